//! Files that appear whole or not at all.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Says early what [`write()`] would only find out at the end of a long computation: that the file
/// exists and may not be replaced, or that its folder does not exist.
///
/// # Errors
/// If the file could not be written.
pub fn check(path: &Path, force: bool) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) if !force => Err(exists()),
        Ok(_) => Ok(()),
        Err(_) => fs::metadata(folder(path)).map(|_| ()),
    }
}

/// Writes a file: under another name first, so that whoever reads it finds all of it, and a failure
/// leaves what was there. With `force`, an existing file is replaced.
///
/// # Errors
/// If the file exists and `force` is not given, or it cannot be written.
pub fn write(path: &Path, contents: &[u8], force: bool) -> io::Result<()> {
    // What a link points to is replaced, not the link; pipes and /dev/null are no files to replace.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if force && fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, contents);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mmaprobe-");
    // Readable as any new file is: temporary files are their owner's alone otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder(path))?;
    file.write_all(contents)?;
    // A name must not stand for less than that after a power failure.
    file.as_file().sync_all()?;
    let result = match force {
        true => file.persist(path),
        false => file.persist_noclobber(path),
    };
    match result {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Err(exists()),
        Err(error) => Err(error.error),
    }
}

fn exists() -> io::Error {
    io::Error::new(ErrorKind::AlreadyExists, "it exists already; --force replaces it")
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
