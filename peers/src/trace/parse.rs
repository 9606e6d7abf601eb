//! How does a line of `strace -f -xx` become a call? Strings are hexadecimal there, so that
//! commas, brackets and quotes mean structure only.

use std::collections::BTreeMap;

/// The calls that change files, names or file positions, and those that sync.
pub const TRACED: &str = "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,read,readv,\
write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,sync,syncfs,\
rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,\
copy_file_range,sendfile,splice,mmap";

/// One call that is about to begin, or that has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The thread.
    pub thread: u64,
    /// `pwrite64`.
    pub name: String,
    /// The arguments at the top level; a string stands as `""`.
    pub plain: Vec<String>,
    /// The strings, in order, those inside brackets included.
    pub strings: Vec<Vec<u8>>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A call begins; of an unfinished one the last arguments may be missing.
    Begin(Call),
    /// A call has returned this, not an error.
    End(Call, i64),
    /// A call has failed.
    Failed(u64),
}

impl Call {
    /// Argument `index` as a number.
    pub fn number(&self, index: usize) -> Option<i64> {
        let text = self.plain.get(index)?.trim();
        match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// String `index` as a path.
    pub fn path(&self, index: usize) -> Option<String> {
        String::from_utf8(self.strings.get(index)?.clone()).ok()
    }
}

/// Reads the lines of a trace, joining calls that were cut in two by another thread's.
#[derive(Debug, Default)]
pub struct Parser {
    unfinished: BTreeMap<u64, String>,
}

impl Parser {
    /// The steps of one line.
    pub fn line(&mut self, line: &str) -> Vec<Step> {
        let Some((thread, rest)) = line.split_once(' ') else {
            return Vec::new();
        };
        let (Ok(thread), rest) = (thread.parse::<u64>(), rest.trim_start()) else {
            return Vec::new();
        };
        if rest.starts_with("---") || rest.starts_with("+++") {
            return Vec::new();
        }
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            self.unfinished.insert(thread, begun.to_owned());
            return call(thread, begun).map(Step::Begin).into_iter().collect();
        }
        if let Some(resumed) = rest.strip_prefix("<...") {
            let Some((_, tail)) = resumed.split_once("resumed>") else {
                return Vec::new();
            };
            let begun = self.unfinished.remove(&thread).unwrap_or_default();
            return end(thread, &format!("{begun}{tail}")).into_iter().collect();
        }
        let begin = call(thread, rest).map(Step::Begin);
        begin.into_iter().chain(end(thread, rest)).collect()
    }
}

fn end(thread: u64, text: &str) -> Option<Step> {
    let (_, result) = text.rsplit_once(" = ")?;
    let first = result.split_whitespace().next()?;
    let value = match first.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).unwrap_or(0),
        None => first.parse().unwrap_or(-1),
    };
    if value < 0 {
        return Some(Step::Failed(thread));
    }
    Some(Step::End(call(thread, text)?, value))
}

/// Splits `name(arguments…`, whole or cut off anywhere.
fn call(thread: u64, text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let mut call = Call {
        thread,
        name: name.to_owned(),
        plain: vec![String::new()],
        strings: Vec::new(),
    };
    let mut depth = 0;
    let mut rest = rest;
    while let Some(symbol) = rest.chars().next() {
        match symbol {
            '"' => {
                let (string, after) = rest[1..].split_once('"')?;
                call.strings.push(unhex(string)?);
                push(&mut call.plain, "\"\"");
                rest = after;
                continue;
            }
            ')' if depth == 0 => break,
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            _ => {}
        }
        if symbol == ',' && depth == 0 {
            call.plain.push(String::new());
        } else {
            push(&mut call.plain, symbol.encode_utf8(&mut [0; 4]));
        }
        rest = &rest[symbol.len_utf8()..];
    }
    for plain in &mut call.plain {
        *plain = plain.trim().to_owned();
    }
    Some(call)
}

fn push(plain: &mut [String], text: &str) {
    if let Some(last) = plain.last_mut() {
        last.push_str(text);
    }
}

/// `\x41\x42` as bytes.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes()
        .chunks(4)
        .map(|chunk| match chunk {
            [b'\\', b'x', high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_beginning_and_an_end() {
        let steps = Parser::default().line(r#"12 pwrite64(3, "\x41\x2c\x22", 3, 4096) = 3"#);
        let Step::End(call, 3) = &steps[1] else {
            panic!("{steps:?}");
        };
        assert_eq!(call.strings, [b"A,\"".to_vec()]);
        assert_eq!(call.number(3), Some(4096));
        assert!(matches!(&steps[0], Step::Begin(begun) if begun == call));
    }

    #[test]
    fn a_call_cut_in_two_is_joined() {
        let mut parser = Parser::default();
        let begun = parser.line("7 fsync(5 <unfinished ...>");
        assert!(matches!(&begun[0], Step::Begin(call) if call.number(0) == Some(5)));
        assert!(parser.line(r#"8 close(9) = 0"#).len() == 2);
        let ended = parser.line("7 <... fsync resumed>) = 0");
        assert!(matches!(&ended[0], Step::End(call, 0) if call.name == "fsync"));
    }

    #[test]
    fn the_parts_of_a_vector_are_all_there() {
        let line = r#"1 writev(4, [{iov_base="\x61", iov_len=1}, {iov_base="\x62\x63", iov_len=2}], 2) = 3"#;
        let steps = Parser::default().line(line);
        let Step::End(call, 3) = &steps[1] else {
            panic!("{steps:?}");
        };
        assert_eq!(call.strings.concat(), b"abc");
        assert_eq!(call.plain.len(), 3);
    }

    #[test]
    fn a_failure_is_no_end() {
        let steps =
            Parser::default().line(r#"1 unlink("\x61") = -1 ENOENT (No such file or directory)"#);
        assert_eq!(steps.last(), Some(&Step::Failed(1)));
    }
}
