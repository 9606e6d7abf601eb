//! What does one code cost? Over a million rows, 384 components, one thread.
//!
//! Times are CPU time. `cargo bench -p chronolith-segments --bench codes`; divide by the rows for a code.

use std::hint::black_box;
use std::time::Duration;

use chronolith_segments::{Coder, VectorFormat, VectorSpace, code_distances};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DIM: u32 = 384;
const CODE_BYTES: usize = 48;

fn space() -> VectorSpace {
    VectorSpace {
        model: "bench".into(),
        dim: DIM,
        format: VectorFormat::F16,
        normalised: true,
    }
}

/// Runs `work` so often, and gives the CPU time of it: others work on the machine too.
fn cpu(mut work: impl FnMut()) -> impl FnMut(u64) -> Duration {
    let cpu_ns = || -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ns = stat.split_whitespace().next();
        ns.and_then(|ns| ns.parse().ok()).unwrap_or(0)
    };
    move |times| {
        let start_ns = cpu_ns();
        (0..times).for_each(|_| work());
        // The system counts in steps: a round too short to be counted took something.
        Duration::from_nanos((cpu_ns() - start_ns).max(1))
    }
}

/// Bytes that look like chance.
fn noise(n: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_le_bytes()[6]
    };
    (0..n).map(|_| next()).collect()
}

fn codes(c: &mut Criterion) {
    let coder = Coder::new(&space(), 7);
    let vector: Vec<f32> = (0..384_u16).map(|i| (f32::from(i) * 0.7).sin()).collect();
    let stored: Vec<u8> = vector
        .iter()
        .flat_map(|x| half::f16::from_f32(x * 0.07).to_le_bytes())
        .collect();
    c.bench_function("encode", |b| {
        let mut code = Vec::new();
        b.iter_custom(cpu(|| {
            code.clear();
            black_box(coder.encode(black_box(&stored), &mut code));
        }));
    });
    c.bench_function("query", |b| {
        b.iter_custom(cpu(|| {
            black_box(coder.query(black_box(&vector)));
        }))
    });
    for rows in [10_000_usize, 1_000_000] {
        let codes = noise(rows * CODE_BYTES);
        let factors = 0.05_f32.to_le_bytes().repeat(rows);
        let query = coder.query(&vector);
        let mut group = c.benchmark_group(format!("{rows} rows"));
        group.throughput(Throughput::Elements(rows as u64));
        group.sample_size(20);
        let (mut estimates, mut best) = (Vec::new(), 0.0_f32);
        group.bench_function("estimate", |b| {
            b.iter_custom(cpu(|| {
                // In steps, as a scan takes them.
                let steps = codes
                    .chunks(4096 * CODE_BYTES)
                    .zip(factors.chunks(4096 * 4));
                for (codes, factors) in steps {
                    query.estimate_many(codes, factors, &mut estimates);
                    best = best.max(estimates[0]);
                }
                black_box(best);
            }));
        });
        let (query_code, mut distances) = (noise(CODE_BYTES), vec![0; 4096]);
        group.bench_function("distance", |b| {
            b.iter_custom(cpu(|| {
                for codes in codes.chunks(4096 * CODE_BYTES) {
                    let distances = &mut distances[..codes.len() / CODE_BYTES];
                    code_distances(&query_code, codes, distances);
                }
                black_box(distances[0]);
            }));
        });
    }
}

criterion_group!(benches, codes);
criterion_main!(benches);
