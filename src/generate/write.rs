//! A crate on the disk: all of it, or what was there before.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::generate::manifest::MARKER;

/// A crate that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is something in its place that is not to be replaced.
    #[error("{} exists already; a generated crate is replaced with --force", .0.display())]
    Exists(PathBuf),
    /// There is something in its place that is no generated crate.
    #[error("{} is no crate that was generated; --force does not replace it", .0.display())]
    NotGenerated(PathBuf),
    /// The disk refuses.
    #[error("cannot write {}: {error}", .path.display())]
    Io {
        /// The crate's folder.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: io::Error,
    },
}

/// Says early whether a crate may be written to a folder: it does not exist or is empty, or is a
/// generated crate and `force` is given.
///
/// # Errors
/// If it may not.
pub fn check(folder: &Path, force: bool) -> Result<(), WriteError> {
    let failed = |error| WriteError::Io { path: folder.to_path_buf(), error };
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) if !force => Err(WriteError::Exists(folder.to_path_buf())),
        Ok(_) => match fs::read_to_string(folder.join("Cargo.toml")) {
            Ok(manifest) if manifest.lines().any(|line| line == MARKER) => Ok(()),
            _ => Err(WriteError::NotGenerated(folder.to_path_buf())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // It is a file; or lies in one, and does not exist.
        Err(error) if error.kind() == ErrorKind::NotADirectory && folder.exists() => Err(match force {
            true => WriteError::NotGenerated(folder.to_path_buf()),
            false => WriteError::Exists(folder.to_path_buf()),
        }),
        Err(error) => Err(failed(error)),
    }
}

/// Writes the files of a crate into a folder beside the one that it is to be, and then moves that to its
/// place. Of a crate that is replaced, what the generator did not write at the top of the folder, such as
/// `target`, moves along; everything else is deleted.
///
/// # Errors
/// If it may not be written, or cannot be; then what was there is there still.
pub fn write(folder: &Path, files: &[(String, String)], force: bool) -> Result<(), WriteError> {
    check(folder, force)?;
    let failed = |error| WriteError::Io { path: folder.to_path_buf(), error };
    write_checked(folder, files).map_err(failed)
}

fn write_checked(folder: &Path, files: &[(String, String)]) -> io::Result<()> {
    // What a link points to is replaced, not the link.
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mmaprobe-");
    // As any new folder: temporary ones are their owner's alone otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let scratch = builder.tempdir_in(parent)?;
    let (fresh, old) = (scratch.path().join("new"), scratch.path().join("old"));
    for (path, contents) in files {
        let path = fresh.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&fresh))?;
        fs::write(path, contents)?;
    }
    match fs::read_dir(folder).map(Iterator::count) {
        // What may be somebody's working directory, or a mount, stays the folder that it is.
        Ok(0) => return fill(folder, &fresh),
        Ok(_) => fs::rename(folder, &old)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return fs::rename(&fresh, folder),
        Err(error) => return Err(error),
    }
    let replaced = keep_others(&old, &fresh).and_then(|()| fs::rename(&fresh, folder));
    if replaced.is_err() {
        // The first error is the one to tell of.
        let _ = keep_others(&fresh, &old);
        let _ = fs::rename(&old, folder);
    }
    replaced
}

/// Moves everything into an empty folder, or leaves it empty.
fn fill(folder: &Path, fresh: &Path) -> io::Result<()> {
    let filled = keep_others(fresh, folder);
    if filled.is_err() {
        // The first error is the one to tell of.
        let _ = keep_others(folder, fresh);
    }
    filled
}

/// Moves what one folder has, and the other has not, from that one to the other.
fn keep_others(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if fs::symlink_metadata(&target).is_err() {
            fs::rename(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Vec<(String, String)> {
        let manifest = format!("# {text}\n{MARKER}\n");
        vec![("Cargo.toml".into(), manifest), (format!("src/{text}.rs"), text.into())]
    }

    /// Every file below a folder.
    fn listed(folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => names.extend(listed(&path)),
                false => names.push(path.file_name().unwrap().to_str().unwrap().to_string()),
            }
        }
        names.sort();
        names
    }

    #[test]
    fn only_generated_crates_are_replaced_and_only_if_asked() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("below/crate");
        write(&folder, &files("one"), false).unwrap();
        assert_eq!(listed(&folder), ["Cargo.toml", "one.rs"]);
        assert!(matches!(write(&folder, &files("two"), false), Err(WriteError::Exists(_))));
        fs::create_dir(folder.join("target")).unwrap();
        fs::write(folder.join("target/built"), "").unwrap();
        write(&folder, &files("two"), true).unwrap();
        assert_eq!(listed(&folder), ["Cargo.toml", "built", "two.rs"]);
        assert_eq!(listed(place.path()), ["Cargo.toml", "built", "two.rs"]);
        fs::write(folder.join("Cargo.toml"), "[package]\n").unwrap();
        assert!(matches!(write(&folder, &files("three"), true), Err(WriteError::NotGenerated(_))));
        assert!(matches!(
            write(&folder.join("Cargo.toml"), &files("x"), true),
            Err(WriteError::NotGenerated(_))
        ));
    }

    #[test]
    #[cfg(unix)]
    fn empty_folders_are_filled_and_stay_themselves() {
        let place = tempfile::tempdir().unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let folder = place.path().join("crate");
        fs::create_dir(&folder).unwrap();
        let before = inode(&folder);
        write(&folder, &files("one"), false).unwrap();
        assert_eq!(listed(place.path()), ["Cargo.toml", "one.rs"]);
        assert_eq!(inode(&folder), before, "a shell in the folder would be nowhere");
    }

    #[test]
    fn failures_leave_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("crate");
        write(&folder, &files("one"), false).unwrap();
        // A file that is to be a folder too.
        let impossible = vec![("src".to_string(), String::new()), ("src/lib.rs".to_string(), String::new())];
        assert!(matches!(write(&folder, &impossible, true), Err(WriteError::Io { .. })));
        assert_eq!(listed(place.path()), ["Cargo.toml", "one.rs"]);
    }
}
