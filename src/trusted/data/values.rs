//! The values of a table's rows: in memory or, where that is too small for them, in a file that is
//! mapped into it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// Values, one after the other.
#[derive(Clone, Default)]
pub(super) struct Values<T> {
    /// All of them, or those that are not in the file yet.
    held: Vec<T>,
    /// A file that they go to, and how many it has.
    file: Option<(Arc<File>, usize)>,
    /// The file, when it has all of them.
    mapped: Option<Arc<Mmap>>,
}

impl<T: Pod + Default> Values<T> {
    /// Of a file that has all of them.
    pub fn open(file: &File) -> io::Result<Self> {
        // SAFETY: nobody may change the file while it is mapped. It belongs to its owner alone,
        // and programs of this library write to new files only, which then take a name.
        let map = unsafe { Mmap::map(file)? };
        Ok(Values {
            mapped: Some(Arc::new(map)),
            ..Values::default()
        })
    }

    /// All of them; while a file is written, those that it does not have.
    pub fn as_slice(&self) -> &[T] {
        match &self.mapped {
            Some(map) => bytemuck::cast_slice(map),
            None => &self.held,
        }
    }

    /// Whether they are in a file.
    pub fn is_filed(&self) -> bool {
        self.file.is_some() || self.mapped.is_some()
    }

    /// Has the system fetch these, soon to be read, if they are in a file: many at once takes little
    /// longer than one.
    #[cfg_attr(not(unix), allow(unused_variables))]
    pub fn fetch(&self, at: std::ops::Range<usize>) {
        #[cfg(unix)]
        if let Some(map) = &self.mapped {
            let (size, will_need) = (size_of::<T>(), memmap2::Advice::WillNeed);
            // Where it is not possible they are fetched when they are read.
            let _ = map.advise_range(will_need, at.start * size, at.len() * size);
        }
    }

    /// Adds some.
    pub fn extend(&mut self, more: &[T]) {
        self.held.extend_from_slice(more);
    }

    /// The values from place `at` on, which are not in the file, when there are `len` in all: new
    /// ones are 0.
    pub fn from(&mut self, at: usize, len: usize) -> &mut [T] {
        let before = self.file.as_ref().map_or(0, |(_, count)| *count);
        self.held.resize(len - before, T::default());
        &mut self.held[at - before..]
    }

    /// Makes room for so many more values, or gives back what is not used.
    pub fn room(&mut self, more: Option<usize>) {
        match more {
            Some(more) if self.file.is_none() => self.held.reserve_exact(more),
            Some(_) => {}
            None => self.held.shrink_to_fit(),
        }
    }

    /// From now on values go to this new file.
    pub fn spill(&mut self, file: File) {
        self.file = Some((Arc::new(file), 0));
    }

    /// Writes what is not in the file yet, but for the last `keep` values, which may change.
    pub fn write(&mut self, keep: usize) -> io::Result<()> {
        let Some((file, count)) = &mut self.file else {
            return Ok(());
        };
        let ready = self.held.len().saturating_sub(keep);
        (&**file).write_all(bytemuck::cast_slice(&self.held[..ready]))?;
        *count += ready;
        self.held.drain(..ready);
        if *count == ready {
            // All of them were in memory until now.
            self.room(None);
        }
        Ok(())
    }

    /// Writes the rest and reads from the file from now on.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write(0)?;
        self.room(None);
        if let Some((file, _)) = self.file.take() {
            *self = Values::open(&file)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is added, changed and written when, a file ends with the values that memory
        /// has.
        #[test]
        fn a_file_has_what_memory_has(steps in proptest::collection::vec((0usize..40, 0usize..9), 0..30), spill in 0usize..30) {
            let mut memory: Values<i16> = Values::default();
            let mut filed = memory.clone();
            for (k, (count, keep)) in steps.iter().enumerate() {
                if k == spill {
                    filed.spill(tempfile::tempfile().unwrap());
                }
                let more: Vec<i16> = (0..*count).map(|i| (100 * k + i) as i16).collect();
                let all = k * 3 + memory.as_slice().len();
                let back = memory.as_slice().len().min(*keep);
                for values in [&mut memory, &mut filed] {
                    values.extend(&more);
                }
                // The last values of before may change, and new ones be 0.
                let at = memory.as_slice().len() - back;
                for values in [&mut memory, &mut filed] {
                    let end = values.from(at, all.max(at + back));
                    end.iter_mut().for_each(|v| *v += 1);
                }
                filed.write(40).unwrap();
            }
            memory.finish().unwrap();
            filed.finish().unwrap();
            prop_assert_eq!(memory.as_slice(), filed.as_slice());
            prop_assert_eq!(filed.is_filed(), spill < steps.len());
        }
    }
}
