#!/usr/bin/env python3
"""The vector peers that come as Python wheels, over a folder of the project's generator.

    vectors.py CORPUS [--engines ...] [--rows N] [--filters ...] [--target R] [--json F]

Each engine is built and asked in a process of its own with one thread. Times are processor time of
the process, one call a query; the fixed cost of a call from Python is in them, so look at ratios
to the same wheel's other lines first. The JSON has the shape that `chronolith-peers vectors`
writes and reads (`--beside`), so that both stand in one table.
"""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
# Before numpy: pools take their size when they are loaded. LanceDB keeps its own threads: with
# one of each it waits for itself.
os.environ.update({name: "1" for name in THREADS})
os.environ.setdefault("LANCE_LOG", "error")

import numpy as np  # noqa: E402

K = 10
FILTERS = ("all", "f0.1", "f1", "f10", "t0.1", "t1", "t10")
SHARE = {"0.1": 0.001, "1": 0.01, "10": 0.1}
CHUNK = 1000


class Corpus:
    """The first `rows` rows of a folder, and what is asked of them."""

    def __init__(self, folder, rows, queries):
        meta_path = os.path.join(folder, "meta.json")
        if not os.path.exists(meta_path):
            sys.exit(f"{meta_path}: no such file: make the folder with bench/gen.py")
        with open(meta_path) as file:
            self.meta = json.load(file)
        vectors = np.load(os.path.join(folder, "vectors.npy"), mmap_mode="r")
        columns = np.load(os.path.join(folder, "cols.npz"))
        self.folder = folder
        self.rows = min(rows or len(vectors), len(vectors))
        self.vectors = np.ascontiguousarray(vectors[: self.rows])
        self.buckets = columns["bucket"][: self.rows]
        self.times = columns["ts"][: self.rows]
        asked = np.load(os.path.join(folder, "qvec.npy"))
        # Queries are sorted by time: an even spread.
        self.picks = np.linspace(0, len(asked) - 1, min(queries, len(asked))).astype(int)
        self.queries = np.ascontiguousarray(asked[self.picks])

    def cut(self, name):
        """The least time of a `t` filter, s."""
        return int(self.times[int(self.rows * (1 - SHARE[name[1:]]))])

    def bound(self, name):
        """The bucket that an `f` filter stays below."""
        return int(SHARE[name[1:]] * 1000)

    def mask(self, name):
        """Rows that pass, or None for all."""
        if name == "all":
            return None
        if name[0] == "f":
            return self.buckets < self.bound(name)
        return self.times >= self.cut(name)

    def exact(self, name):
        """Row numbers of the exact answers: of the folder where they are for these rows."""
        if self.rows == self.meta["n"]:
            return np.load(os.path.join(self.folder, f"gt_{name}.npy"))[self.picks]
        mask = self.mask(name)
        rows = np.arange(self.rows) if mask is None else np.flatnonzero(mask)
        scores = self.queries @ self.vectors[rows].T
        return rows[np.argsort(-scores, axis=1)[:, :K]]

    def texts(self):
        """Texts of the rows, for the hybrid line."""
        with open(os.path.join(self.folder, "records.jsonl")) as file:
            return [json.loads(line)["text"] for line, _ in zip(file, range(self.rows))]

    def facts(self):
        """Words that go with the queries."""
        with open(os.path.join(self.folder, "queries_fact.jsonl")) as file:
            lines = [json.loads(line)["text"] for line in file]
        return [lines[pick] for pick in self.picks]


class Engine:
    """One wheel. `build` fills `self.dir`; `search` answers one query with row numbers."""

    wheel = None
    about = ""
    knobs = (None,)  # values of the recall knob, cheap first
    filters = ("all",)
    hybrid = None  # or a method: (words, vector) -> row numbers

    def __init__(self, corpus, folder):
        self.corpus, self.dir = corpus, folder

    def build(self):
        raise NotImplementedError

    def ready(self, name):
        """What a filter needs once, not for each query."""
        return None

    def search(self, query, knob, filtered):
        raise NotImplementedError


class Flat(Engine):
    about = "numpy: every f32 row scored, BLAS"
    filters = FILTERS

    def build(self):
        np.save(os.path.join(self.dir, "vectors.npy"), self.corpus.vectors)

    def ready(self, name):
        mask = self.corpus.mask(name)
        rows = None if mask is None else np.flatnonzero(mask)
        return rows, self.corpus.vectors if rows is None else self.corpus.vectors[rows]

    def search(self, query, knob, filtered):
        rows, vectors = filtered
        scores = vectors @ query
        count = min(K, len(scores))
        best = np.argpartition(-scores, count - 1)[:count]
        best = best[np.argsort(-scores[best])]
        return best if rows is None else rows[best]


class Usearch(Engine):
    wheel = "usearch"
    about = "HNSW M16, f16, expansion 128 at build"
    knobs = (16, 32, 64, 128, 256, 512)

    def build(self):
        from usearch.index import Index

        self.index = Index(ndim=self.corpus.vectors.shape[1], metric="ip", dtype="f16", connectivity=16,
                           expansion_add=128)
        self.index.add(np.arange(self.corpus.rows), self.corpus.vectors, threads=1)
        self.index.save(os.path.join(self.dir, "index.usearch"))

    def search(self, query, knob, filtered):
        self.index.expansion_search = knob
        return self.index.search(query, K, threads=1).keys


class Hnswlib(Engine):
    wheel = "hnswlib"
    about = "HNSW M16, f32, ef 200 at build; asked without filters"
    knobs = (16, 32, 64, 128, 256, 512)

    def build(self):
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=self.corpus.vectors.shape[1])
        self.index.init_index(max_elements=self.corpus.rows, M=16, ef_construction=200, random_seed=7)
        self.index.add_items(self.corpus.vectors, np.arange(self.corpus.rows), num_threads=1)
        self.index.save_index(os.path.join(self.dir, "index.bin"))

    def search(self, query, knob, filtered):
        self.index.set_ef(knob)
        return self.index.knn_query(query, k=K, num_threads=1)[0][0]


class Faiss(Engine):
    wheel = "faiss-cpu"
    about = "IVF, PQ192x4 fast scan, 50 rescored in f32; filters by a bitmap"
    knobs = (4, 8, 16, 32, 64, 128, 256)
    filters = FILTERS

    def build(self):
        import faiss

        faiss.omp_set_num_threads(1)
        vectors = self.corpus.vectors
        lists = max(16, int(4 * self.corpus.rows**0.5) // 16 * 16)
        codes = faiss.index_factory(vectors.shape[1], f"IVF{lists},PQ192x4fs", faiss.METRIC_INNER_PRODUCT)
        sample = np.linspace(0, len(vectors) - 1, min(len(vectors), 64 * lists)).astype(int)
        codes.train(vectors[sample])
        codes.add(vectors)
        self.codes, self.index = codes, faiss.IndexRefineFlat(codes, faiss.swig_ptr(vectors))
        self.index.k_factor = 5
        faiss.write_index(self.index, os.path.join(self.dir, "index.faiss"))

    def ready(self, name):
        import faiss

        mask = self.corpus.mask(name)
        return None if mask is None else faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))

    def search(self, query, knob, filtered):
        import faiss

        inner = faiss.SearchParametersIVF(nprobe=knob, sel=filtered)
        params = faiss.IndexRefineSearchParameters(k_factor=5, base_index_params=inner)
        return self.index.search(query[None], K, params=params)[1][0]


class Turbovec(Engine):
    wheel = "turbovec"
    about = "4-bit codes, flat scan, N rescored in f32 with numpy"
    knobs = (10, 20, 50, 100)

    def build(self):
        from turbovec import TurboQuantIndex

        self.index = TurboQuantIndex(self.corpus.vectors.shape[1], 4)
        self.index.add(self.corpus.vectors)
        self.index.prepare()
        self.index.write(os.path.join(self.dir, "index.tv"))

    def search(self, query, knob, filtered):
        rows = self.index.search(query[None], knob)[1][0]
        return rows[np.argsort(-(self.corpus.vectors[rows] @ query))[:K]]


class Qdrant(Engine):
    wheel = "qdrant-edge-py"
    about = "HNSW M16, f32, ef 100 at build, indexes on bucket and time, BM25 with IDF for hybrid (RRF)"
    knobs = (16, 32, 64, 128, 256)
    filters = FILTERS

    def build(self):
        import qdrant_edge as q

        vector = q.EdgeVectorParams(size=self.corpus.vectors.shape[1], distance=q.Distance.Dot)
        config = q.EdgeConfig(
            vectors={"dense": vector},
            sparse_vectors={"words": q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)},
            hnsw_config=q.HnswIndexConfig(16, 100, 1000, max_indexing_threads=1),
            optimizers=q.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1000,
                                              max_segment_size=10**8),
            max_search_threads=1)
        self.shard = q.EdgeShard.create(self.dir, config)
        self.words = q.Bm25(q.Bm25Config(avg_len=28.0))
        for field in ("bucket", "time"):
            self.shard.update(q.UpdateOperation.create_field_index(field, q.PayloadSchemaType.Integer))
        texts = self.corpus.texts()
        for first in range(0, self.corpus.rows, CHUNK):
            self.shard.update(q.UpdateOperation.upsert_points([
                q.Point(row, {"dense": self.corpus.vectors[row].tolist(),
                              "words": self.words.embed_document(texts[row])},
                        {"bucket": int(self.corpus.buckets[row]), "time": int(self.corpus.times[row])})
                for row in range(first, min(first + CHUNK, self.corpus.rows))]))
        while self.shard.optimize():
            pass
        self.shard.flush()

    def ready(self, name):
        import qdrant_edge as q

        if name == "all":
            return None
        bound = {"lt": self.corpus.bound(name)} if name[0] == "f" else {"gte": self.corpus.cut(name)}
        field = "bucket" if name[0] == "f" else "time"
        return q.Filter(must=[q.FieldCondition(field, range=q.RangeFloat(**bound))])

    def search(self, query, knob, filtered):
        import qdrant_edge as q

        found = self.shard.search(q.SearchRequest(
            query=q.Query.Nearest(query.tolist(), using="dense"), limit=K, filter=filtered,
            params=q.SearchParams(hnsw_ef=knob)))
        return [point.id for point in found]

    def hybrid(self, words, query):
        import qdrant_edge as q

        dense = q.Prefetch(limit=100, query=q.Query.Nearest(query.tolist(), using="dense"))
        sparse = q.Prefetch(limit=100, query=q.Query.Nearest(self.words.embed_query(words), using="words"))
        found = self.shard.query(q.QueryRequest(limit=K, prefetches=[dense, sparse], query=q.Fusion.Rrf(k=60)))
        return [point.id for point in found]


class Zvec(Engine):
    wheel = "zvec"
    about = "HNSW M16, f32, ef 200 at build, inverted indexes on bucket and time"
    knobs = (32, 64, 128, 256)
    filters = FILTERS

    def build(self):
        import zvec

        zvec.init(log_level=zvec.LogLevel.ERROR, query_threads=1, optimize_threads=1)
        number = [zvec.FieldSchema(name, zvec.DataType.INT64,
                                   index_param=zvec.InvertIndexParam(enable_range_optimization=True))
                  for name in ("bucket", "time")]
        graph = zvec.HnswIndexParam(metric_type=zvec.MetricType.IP, m=16, ef_construction=200)
        vector = zvec.VectorSchema("dense", zvec.DataType.VECTOR_FP32, self.corpus.vectors.shape[1], graph)
        schema = zvec.CollectionSchema("peers", fields=number, vectors=vector)
        self.store = zvec.create_and_open(os.path.join(self.dir, "store"), schema)
        for first in range(0, self.corpus.rows, CHUNK):
            self.store.insert([
                zvec.Doc(id=str(row), vectors={"dense": self.corpus.vectors[row].tolist()},
                         fields={"bucket": int(self.corpus.buckets[row]), "time": int(self.corpus.times[row])})
                for row in range(first, min(first + CHUNK, self.corpus.rows))])
        self.store.optimize()
        self.store.flush()

    def ready(self, name):
        if name == "all":
            return None
        return f"bucket < {self.corpus.bound(name)}" if name[0] == "f" else f"time >= {self.corpus.cut(name)}"

    def search(self, query, knob, filtered):
        import zvec

        asked = zvec.Query("dense", vector=query, param=zvec.HnswQueryParam(ef=knob))
        found = self.store.query(asked, topk=K, filter=filtered, output_fields=[])
        return [int(document.id) for document in found]


class Lance(Engine):
    wheel = "lancedb"
    about = "IVF_RQ, 20 x 10 refined, prefilter"
    knobs = (10, 20, 50, 100)
    filters = FILTERS

    def build(self):
        import lancedb
        import pyarrow as pa

        vectors = self.corpus.vectors
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = pa.table({"row": np.arange(self.corpus.rows), "bucket": self.corpus.buckets,
                          "time": self.corpus.times, "vector": column})
        self.table = lancedb.connect(self.dir).create_table("rows", table)
        self.table.create_index(metric="dot", index_type="IVF_RQ",
                                num_partitions=max(4, int(self.corpus.rows**0.5) // 2))
        for field in ("bucket", "time"):
            self.table.create_scalar_index(field)

    def ready(self, name):
        return Zvec.ready(self, name)

    def search(self, query, knob, filtered):
        asked = self.table.search(query).distance_type("dot").limit(K).nprobes(knob).refine_factor(20).select(["row", "_distance"])
        if filtered:
            asked = asked.where(filtered, prefilter=True)
        return asked.to_arrow()["row"].to_pylist()


ENGINES = {"flat-numpy": Flat, "usearch-py": Usearch, "hnswlib-py": Hnswlib, "faiss-py": Faiss,
           "turbovec-py": Turbovec, "qdrant-edge-py": Qdrant, "zvec-py": Zvec, "lancedb-py": Lance}


def folder_bytes(folder):
    paths = (os.path.join(base, name) for base, _, names in os.walk(folder) for name in names)
    return sum(os.stat(path).st_blocks * 512 for path in paths)


def passes_us(ask, count, passes, seconds_max):
    """Processor time of each query, a list for each pass; fewer queries where the engine is slow."""
    begin = time.process_time_ns()
    asked = 0
    while asked < count and (asked < 20 or time.process_time_ns() - begin < seconds_max * 1e9 / (passes + 1)):
        ask(asked)
        asked += 1
    times = []
    for _ in range(passes):
        one = []
        for number in range(asked):
            begin = time.process_time_ns()
            ask(number)
            one.append((time.process_time_ns() - begin) / 1000)
        times.append(one)
    return times


def point(kind, knob, times, found, exact):
    """One line: the shape that the Rust side shares."""
    percentiles = np.percentile(np.array(times), [50, 95], axis=1)
    share = None
    if exact is not None:
        wanted = [set(row[row >= 0].tolist()) for row in exact[: len(found)]]
        hit = sum(len(want & set(int(row) for row in rows)) for want, rows in zip(wanted, found))
        share = hit / max(1, sum(map(len, wanted)))
    return {"kind": kind, "knob": "default" if knob is None else str(knob), "asked": len(times[0]),
            "recall": share, "hits_min": min(len([row for row in rows if row >= 0]) for rows in found),
            "p50_us": percentiles[0].tolist(), "p95_us": percentiles[1].tolist()}


def measure(engine, arguments, kinds):
    """Raises the knob until the recall is reached, for each kind."""
    corpus, points = engine.corpus, []
    for kind in kinds:
        if kind == "hybrid":
            if engine.hybrid:
                words = corpus.facts()
                points.append(line(kind, None, lambda i: engine.hybrid(words[i], corpus.queries[i]), None,
                                   corpus, arguments))
            continue
        if kind not in engine.filters:
            continue
        exact, filtered = corpus.exact(kind), engine.ready(kind)
        for knob in engine.knobs:
            ask = lambda i: engine.search(corpus.queries[i], knob, filtered)  # noqa: B023, E731
            points.append(line(kind, knob, ask, exact, corpus, arguments))
            if points[-1]["recall"] >= arguments.target and not arguments.sweep:
                break
    return points


def line(kind, knob, ask, exact, corpus, arguments):
    times = passes_us(ask, len(corpus.queries), arguments.passes, arguments.seconds_max)
    found = [ask(number) for number in range(len(times[0]))]
    return point(kind, knob, times, found, exact)


def child(arguments):
    """Builds and asks the one engine; the result is the last line of stdout."""
    corpus = Corpus(arguments.corpus, arguments.rows, arguments.queries)
    [name] = arguments.engines
    engine = ENGINES[name](corpus, arguments.dir)
    begin = time.process_time()
    engine.build()
    build_us = (time.process_time() - begin) * 1e6 / corpus.rows
    version = f"{engine.wheel} {importlib.metadata.version(engine.wheel)}: " if engine.wheel else ""
    print(json.dumps({
        "name": name, "about": version + engine.about, "build_us": build_us,
        "bytes": folder_bytes(arguments.dir) / corpus.rows,
        "points": measure(engine, arguments, arguments.filters)}))


def run_child(arguments, name):
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--child", "--engines", name, "--dir"]
    try:
        # Made here, so that it goes away with a child that was stopped, too.
        with tempfile.TemporaryDirectory(prefix="peers-python-", dir=arguments.dir) as folder:
            done = subprocess.run([*command, folder], stdout=subprocess.PIPE, text=True,
                                  timeout=arguments.engine_seconds)
    except subprocess.TimeoutExpired:
        print(f"{name}: not done after {arguments.engine_seconds:.0f} s (--engine-seconds)", file=sys.stderr)
        return None
    if done.returncode:
        print(f"{name}: failed with code {done.returncode}, see above", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def show(report):
    print("| engine | kind | knob | recall | least hits | p50 us | p95 us | build us | bytes |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for engine in report["engines"]:
        for at in engine["points"]:
            recall = "" if at["recall"] is None else f"{at['recall']:.4f}"
            print(f"| {engine['name']} | {at['kind']} | {at['knob']} | {recall} | {at['hits_min']} "
                  f"| {np.median(at['p50_us']):.0f} | {np.median(at['p95_us']):.0f} "
                  f"| {engine['build_us']:.0f} | {engine['bytes']:.0f} |")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("corpus", help="folder made by bench/gen.py")
    parser.add_argument("--engines", type=names, default=list(ENGINES), help=",".join(ENGINES))
    parser.add_argument("--rows", type=int, help="the first N rows alone [all]")
    parser.add_argument("--filters", type=names, default=["all"], help=",".join(FILTERS) + ",hybrid [all]")
    parser.add_argument("--target", type=float, default=0.99, help="recall@10 at which the knob stays [0.99]")
    parser.add_argument("--sweep", action="store_true", help="every value of the knob")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seconds-max", type=float, default=20, help="processor seconds for the passes of a line")
    parser.add_argument("--engine-seconds", type=float, default=3600, help="on the wall, for each engine [3600]")
    parser.add_argument("--dir", help="where stores are made, and removed [the temporary directory]")
    parser.add_argument("--json", help="writes the report here")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.engines:
        if name not in ENGINES:
            parser.error(f"no engine {name}: there are {', '.join(ENGINES)}")
    for name in arguments.filters:
        if name not in FILTERS + ("hybrid",):
            parser.error(f"no filter {name}: there are {', '.join(FILTERS)}, hybrid")
    return arguments


def main():
    arguments = parse()
    if arguments.child:
        return child(arguments)
    corpus = Corpus(arguments.corpus, arguments.rows, arguments.queries)
    report = {"corpus": os.path.basename(os.path.normpath(arguments.corpus)), "rows": corpus.rows,
              "seed": corpus.meta["seed"], "load": os.getloadavg()[0], "engines": []}
    del corpus
    for name in arguments.engines:
        print(f"{name}", file=sys.stderr)
        if (one := run_child(arguments, name)) is not None:
            report["engines"].append(one)
    show(report)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=1)
    return 0 if len(report["engines"]) == len(arguments.engines) else 1


if __name__ == "__main__":
    sys.exit(main())
