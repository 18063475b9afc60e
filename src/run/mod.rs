//! The one recipe of a run. [`prepare`] reads what a run file asks for and warns;
//! [`Prepared::price`] says what it would cost; [`Prepared::begin`] opens ledger and engine and
//! gives a [`PosteriorRun`](crate::posterior_run::PosteriorRun) to be pulled step by step.
//!
//! ```
//! use std::path::Path;
//! use dpmc::config::Plan;
//! use dpmc::run::{Coins, Place, prepare};
//!
//! # let folder = std::env::temp_dir().join(format!("dpmc-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let mut table = String::from("age,ill\n");
//! # (0..2000).for_each(|i| table += &format!("{},{}\n", 20 + i % 60, (i * i) % 7 / 4));
//! # std::fs::write(folder.join("people.csv"), table)?;
//! let text = r#"
//! [data]
//! file = "people.csv"
//! [data.label]
//! column = "ill"
//! [[data.features]]
//! intercept = true
//! [[data.features]]
//! columns = ["age"]
//! scale = [0, 100]
//! [model]
//! kind = "logistic"
//! prior = { kind = "normal", sd = 3.0 }
//! [sampler]
//! algorithm = "dp-laplace"
//! [privacy]
//! epsilon = 2.0
//! delta = 1e-6
//! "#;
//! let plan = Plan::parse(&folder.join("run.toml"), text.into())?;
//! let prepared = prepare(plan)?;
//! let mut run = prepared.begin(Place::Memory, Coins::Fresh)?;
//! for _ in 0..100 {
//!     run.step();
//! }
//! let (draws, certificate) = run.take_draws();
//! assert_eq!((draws.len(), certificate.epsilon), (100, Some(2.0)));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod mixing;
mod outlay;
mod pace;
mod prepare;
mod price;
mod ranks;
mod validate;

pub use error::RunError;
pub use outlay::{NO_DRAW, Outlay};
pub use pace::{iterations_a_part, rows_of_walk};
pub use prepare::{Coins, Place, Prepared, Priced, prepare, prepare_frame};
pub use price::{Price, price_of_decision};
pub use ranks::{Leader, prepare_over, serve};
pub use validate::validate;
