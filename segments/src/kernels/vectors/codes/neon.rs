//! The product with NEON, which counts the bits of 16 bytes at once. Small, since no machine
//! of this project has run it: a scan takes it only after it gave the scalar answers.

use std::arch::aarch64::{vaddlvq_u8, vcntq_u8, veorq_u8, vld1q_u8};

use super::{Planes, scalar};

/// Bytes of a register.
const WIDE: usize = 16;

/// Proof that this processor has NEON: only [`Neon::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    /// See [`super::CodeKernel::products`].
    #[inline]
    pub(super) fn products<'a>(
        self,
        planes: &Planes,
        code_at: impl Fn(usize) -> &'a [u8],
        products: &mut [i32],
    ) {
        // SAFETY: `self` proves that the processor has NEON.
        unsafe { products_of(planes, code_at, products) };
    }
}

#[target_feature(enable = "neon")]
fn products_of<'a>(planes: &Planes, code_at: impl Fn(usize) -> &'a [u8], products: &mut [i32]) {
    for (at, product) in products.iter_mut().enumerate() {
        let code = code_at(at);
        assert_eq!(code.len(), planes.words() * 8, "a code of another length");
        let (whole, rest) = code.as_chunks::<WIDE>();
        let mut distance = scalar::distance_to_planes(planes, rest, whole.len() * WIDE / 8);
        for weight in 0..planes.planes {
            for (code, plane) in whole.iter().zip(planes.plane(weight).as_chunks::<WIDE>().0) {
                // SAFETY: a live borrow of 16 bytes; the load takes 16, unaligned.
                let code = unsafe { vld1q_u8(code.as_ptr()) };
                // SAFETY: as above.
                let plane = unsafe { vld1q_u8(plane.as_ptr()) };
                let differing = vaddlvq_u8(vcntq_u8(veorq_u8(code, plane)));
                distance += i32::from(differing) << weight;
            }
        }
        *product = planes.product(distance);
    }
}
