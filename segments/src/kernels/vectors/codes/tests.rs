use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The definition of the product once more, component by component.
fn naive(steps: &[i8], code: &[u8]) -> i32 {
    let signed = |at: usize| {
        if code[at / 8] >> (at % 8) & 1 == 1 {
            1
        } else {
            -1
        }
    };
    (0..steps.len())
        .map(|at| signed(at) * i32::from(steps[at]))
        .sum()
}

fn code_at<'a>(codes: &'a [u8], bytes: usize) -> impl Fn(usize) -> &'a [u8] {
    move |at| &codes[at * bytes..(at + 1) * bytes]
}

/// Code lengths in words: those of 384 and of 768 components often.
fn words() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(6_usize), 1 => Just(12), 3 => 1_usize..18, 1 => Just(64)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_form_gives_the_integers_of_the_definition(
        (words, levels) in words().prop_flat_map(|words| {
            (Just(words), vec(any::<u8>(), words * 64))
        }),
        planes in 1_usize..=4,
        n in 0_usize..70,
        bytes in vec(any::<u8>(), 1..400),
    ) {
        let bytes_of = words * 8;
        let codes: Vec<u8> = (0..n * bytes_of).map(|at| bytes[at * 7 % bytes.len()] ^ bytes[at % bytes.len()]).collect();
        let most = (1_i8 << planes) - 1;
        let level = |byte: &u8| 2 * (byte % (1 << planes)).cast_signed() - most;
        let levels: Vec<i8> = levels.iter().map(level).collect();
        let planes = Planes::new(&levels, planes);
        let expected: Vec<i32> = codes.chunks(bytes_of).map(|code| naive(&levels, code)).collect();
        let query = &codes[..bytes_of.min(codes.len())];
        for kernel in CodeKernel::all() {
            let mut products = vec![7; n];
            kernel.products(&planes, code_at(&codes, bytes_of), &mut products);
            prop_assert_eq!(&products, &expected, "{:?}", kernel);
            if n > 0 {
                let mut distances = vec![7; n];
                kernel.distances(query, &codes, &mut distances);
                let naive = codes.chunks(bytes_of).map(|code| {
                    code.iter().zip(query).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
                });
                prop_assert_eq!(distances, naive.collect::<Vec<_>>(), "{:?}", kernel);
            }
        }
    }
}

#[test]
fn the_ends_of_all_levels_and_bits_fit() {
    for (words, planes) in [(1, 1), (6, 2), (6, 4), (64, 3), (64, 4)] {
        let most = (1_i8 << planes) - 1;
        for level in [-most, most] {
            let of_query = Planes::new(&vec![level; words * 64], planes);
            for byte in [0_u8, 0xff] {
                let codes = vec![byte; words * 8 * 9];
                let sign = if byte == 0 { -1 } else { 1 };
                let all = sign * i32::from(level) * i32::try_from(words * 64).expect("few");
                for kernel in CodeKernel::all() {
                    let mut products = [1; 9];
                    kernel.products(&of_query, code_at(&codes, words * 8), &mut products);
                    assert_eq!(products, [all; 9], "{kernel:?} {words} {level} {byte}");
                }
            }
        }
    }
}

#[test]
fn the_form_of_this_machine_is_the_fastest_that_it_has() {
    let best = CodeKernel::best();
    let first = CodeKernel::all().next().expect("scalar at least");
    assert_eq!(format!("{best:?}"), format!("{first:?}"));
    println!("kernel of codes: {best:?}");
}
