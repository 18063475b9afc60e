//! Draws as Parquet part files: `chain` (int32), `iteration` (int64), one float64 column
//! per parameter.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::types::Type;

use super::OutputError;
use super::parts::checked_parts;
use crate::posterior_run::{Draw, PartFile};

/// As a run file may ask for.
const MOST_CHAINS: usize = 65_536;

fn schema(parameters: &[String]) -> Result<Arc<Type>, parquet::errors::ParquetError> {
    let column = |name: &str, kind: Physical| {
        Type::primitive_type_builder(name, kind)
            .with_repetition(Repetition::REQUIRED)
            .build()
            .map(Arc::new)
    };
    let mut fields = vec![
        column("chain", Physical::INT32)?,
        column("iteration", Physical::INT64)?,
    ];
    for name in parameters {
        fields.push(column(name, Physical::DOUBLE)?);
    }
    Type::group_type_builder("draws")
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

/// Writes one closed part file under a temporary name and renames it into place.
pub(super) fn write_part(
    path: &Path,
    temporary: &Path,
    parameters: &[String],
    draws: &[Draw],
) -> Result<PartFile, OutputError> {
    let fail = |what: String| OutputError::Write {
        path: path.into(),
        what,
    };
    let bytes = encode(parameters, draws).map_err(|e| fail(e.to_string()))?;
    let write = || {
        let mut file = File::create(temporary)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(temporary, path)
    };
    write().map_err(|e| {
        // Half a part would only take room, of which there may be none left.
        let _ = std::fs::remove_file(temporary);
        fail(e.to_string())
    })?;
    crate::privacy::sync_folder(path);
    Ok(PartFile::of(&bytes))
}

/// Draws as the bytes of a Parquet file.
fn encode(parameters: &[String], draws: &[Draw]) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, schema(parameters)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut index = 0usize;
    while let Some(mut column) = group.next_column()? {
        match index {
            0 => {
                let v: Vec<i32> = draws.iter().map(|d| d.chain as i32).collect();
                column.typed::<Int32Type>().write_batch(&v, None, None)?;
            }
            1 => {
                let v: Vec<i64> = draws.iter().map(|d| d.iteration as i64).collect();
                column.typed::<Int64Type>().write_batch(&v, None, None)?;
            }
            j => {
                let v: Vec<f64> = draws.iter().map(|d| d.theta[j - 2]).collect();
                column.typed::<DoubleType>().write_batch(&v, None, None)?;
            }
        }
        column.close()?;
        index += 1;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

/// All draws of a run directory.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawTable {
    /// Parameter names.
    pub parameters: Vec<String>,
    /// Per chain, per parameter, the draws in order of iteration.
    pub chains: Vec<Vec<Vec<f64>>>,
}

impl DrawTable {
    /// The draws of one parameter, one vector a chain.
    pub fn parameter(&self, index: usize) -> Vec<Vec<f64>> {
        self.chains.iter().map(|c| c[index].clone()).collect()
    }

    /// Draws of the shortest chain.
    pub fn len(&self) -> usize {
        self.chains
            .iter()
            .map(|c| c.first().map_or(0, Vec::len))
            .min()
            .unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads the draws that the state of a run directory owns, once they are found to be those that
/// were written.
///
/// # Errors
/// [`OutputError`] where the folder or the state is missing, or a part is missing, extra or
/// altered.
pub fn read_draws(directory: &Path) -> Result<DrawTable, OutputError> {
    let mut table = DrawTable {
        parameters: Vec::new(),
        chains: Vec::new(),
    };
    for part in checked_parts(directory)?.1 {
        crate::data::without_panics(|| read_part(&part, &mut table)).unwrap_or_else(|| {
            Err(OutputError::Read {
                path: part.clone(),
                what: "its pages contradict each other (damaged?)".into(),
            })
        })?;
    }
    Ok(table)
}

/// Appends one part's draws to the table.
fn read_part(part: &Path, table: &mut DrawTable) -> Result<(), OutputError> {
    let fail = |what: String| OutputError::Read {
        path: part.into(),
        what,
    };
    let file = File::open(part).map_err(|e| fail(e.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(|e| fail(e.to_string()))?;
    let rows = reader.get_row_iter(None).map_err(|e| fail(e.to_string()))?;
    for row in rows {
        let row = row.map_err(|e| fail(e.to_string()))?;
        let mut chain = 0usize;
        let mut theta = Vec::new();
        for (name, field) in row.get_column_iter() {
            match (name.as_str(), field) {
                ("chain", Field::Int(c)) => {
                    let number = usize::try_from(*c).ok();
                    // A damaged number is not allowed to ask for that many columns.
                    chain = number
                        .filter(|c| *c < MOST_CHAINS)
                        .ok_or_else(|| fail(format!("there is no chain {c} (damaged?)")))?;
                }
                ("iteration", _) => {}
                (name, Field::Double(v)) => {
                    if table.chains.is_empty() {
                        table.parameters.push(name.to_string());
                    }
                    theta.push(*v);
                }
                _ => return Err(fail(format!("unexpected column '{name}'"))),
            }
        }
        while table.chains.len() <= chain {
            table.chains.push(vec![Vec::new(); table.parameters.len()]);
        }
        if theta.len() != table.parameters.len() {
            return Err(fail("parts have different columns".into()));
        }
        for (column, v) in table.chains[chain].iter_mut().zip(theta) {
            column.push(v);
        }
    }
    Ok(())
}
