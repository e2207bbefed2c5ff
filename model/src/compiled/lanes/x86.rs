//! What the vectors of both x86 levels have in common.

/// Makes `Int` of a vector from the names of its intrinsics.
macro_rules! int {
    ($vector:ident: add $add:ident, sub $sub:ident, and $and:ident, or $or:ident, xor $xor:ident,
     srl $srl:ident, sll $sll:ident { $($rest:tt)* }) => {
        impl Int for $vector {
            int!(@binary $vector: add $add, sub $sub, and $and, or $or, xor $xor, srl $srl, sll $sll);
            $($rest)*
        }
    };
    (@binary $vector:ident: $($name:ident $intrinsic:ident),*) => {
        $(
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                // SAFETY: vectors are made with the token alone, which says that the features are there.
                $vector(unsafe { $intrinsic(self.0, other.0) })
            }
        )*
    };
}

/// Makes `Float` of a vector from the names of its intrinsics.
macro_rules! float {
    ($vector:ident: $add:ident, $mul:ident, $mul_add:ident) => {
        impl Float for $vector {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: vectors are made with the token alone, which says that the features are there.
                $vector(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                // SAFETY: as above.
                $vector(unsafe { $mul_add(self.0, factor.0, summand.0) })
            }
        }
    };
}

pub(super) use {float, int};
