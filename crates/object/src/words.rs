//! A macro for enums whose variants have names in outputs.

/// Gives an enum `ALL`, its variants in the order listed here; `as_str`, the word of each variant; and `Display`, which
/// prints that word. The word is the name of the variant unless another is given.
///
/// ```
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Answer {
///     Yes,
///     No,
/// }
/// taffrail_object::words! { Answer { Yes, No = "never" } }
///
/// assert_eq!((Answer::ALL, Answer::Yes.as_str()), ([Answer::Yes, Answer::No], "Yes"));
/// assert_eq!(Answer::No.to_string(), "never");
/// ```
#[macro_export]
macro_rules! words {
    ($name:ident { $($variant:ident $(= $word:literal)?),* $(,)? }) => {
        impl $name {
            /// All variants, in the order in which outputs list them.
            pub const ALL: [$name; [$(stringify!($variant)),*].len()] = [$($name::$variant),*];

            /// Returns the word that outputs print for this variant.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $crate::words!(@word $variant $($word)?),)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
    (@word $variant:ident) => {
        stringify!($variant)
    };
    (@word $variant:ident $word:literal) => {
        $word
    };
}
