//! What features a row has by its declarations: functions of numbers alone. What comes out of them
//! is scaled to the declared norm and put on a grid by those who store it (`src/trusted/data`), so
//! that no guarantee rests on them.

mod interaction;
mod number;
mod one_hot;

pub use interaction::Interaction;
pub(crate) use number::{Column, missing_within};
pub use number::{Form, Number, Transform};
pub use one_hot::OneHot;
pub(crate) use one_hot::{check_levels, number_of};
