//! Columns of numbers as CSV or Parquet.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::DoubleType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::PredictionError;
use crate::output::OutputError;

/// Columns of the same length, each with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(pub Vec<(String, Vec<f64>)>);

impl serde::Serialize for Columns {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

impl Columns {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, |(_, values)| values.len())
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found.map(|(_, values)| values.as_slice())
    }

    /// As CSV with a header; what is no number is an empty cell.
    pub fn csv(&self) -> String {
        let mut out = csv::Writer::from_writer(Vec::new());
        // A Vec takes whatever is written.
        let _ = out.write_record(self.0.iter().map(|(name, _)| name));
        for i in 0..self.rows() {
            let cells = self.0.iter().map(|(_, values)| match values[i] {
                v if v.is_finite() => v.to_string(),
                _ => String::new(),
            });
            let _ = out.write_record(cells);
        }
        String::from_utf8_lossy(&out.into_inner().unwrap_or_default()).into_owned()
    }

    fn parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let mut fields = Vec::new();
        for (name, _) in &self.0 {
            let column = Type::primitive_type_builder(name, Physical::DOUBLE);
            fields.push(Arc::new(
                column.with_repetition(Repetition::REQUIRED).build()?,
            ));
        }
        let schema = Type::group_type_builder("predictions").with_fields(fields);
        let compression = Compression::ZSTD(ZstdLevel::try_new(1)?);
        let properties = WriterProperties::builder().set_compression(compression);
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(
            &mut bytes,
            Arc::new(schema.build()?),
            Arc::new(properties.build()),
        )?;
        let mut group = writer.next_row_group()?;
        for (_, values) in &self.0 {
            if let Some(mut column) = group.next_column()? {
                column
                    .typed::<DoubleType>()
                    .write_batch(values, None, None)?;
                column.close()?;
            }
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }
}

/// Writes columns to a file that ends in `.csv` or `.parquet`; one that is there is replaced.
///
/// # Errors
/// [`PredictionError`] for another ending, or where the file cannot be written.
pub fn write_columns(columns: &Columns, path: &Path) -> Result<(), PredictionError> {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    let fail = |what: String| OutputError::Write {
        path: path.into(),
        what,
    };
    let bytes = if ending == "csv" {
        columns.csv().into_bytes()
    } else if ending == "parquet" {
        columns.parquet().map_err(|e| fail(e.to_string()))?
    } else {
        let what = format!(
            "{}: name a file that ends in .csv or .parquet",
            path.display()
        );
        return Err(PredictionError::Input(what));
    };
    std::fs::write(path, bytes).map_err(|e| fail(e.to_string()))?;
    Ok(())
}
