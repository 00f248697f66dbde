#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore
import VitrineDatabase

extension DatabaseError {
    /// Whether the cause can only be that the cache's database is damaged.
    ///
    /// Beside what SQLite itself calls damage: the cache's statements are constants and its changes fit its schema, so
    /// a table or column that is missing, or a constraint that is violated, means that a byte of the schema or of an
    /// index is wrong; and a file that may be written but is refused has a damaged version in its header
    /// (https://www.sqlite.org/fileformat.html#file_format_version_numbers).
    var isDamage: Bool {
        switch (reason, code & 0xFF) {
        case (.corrupt, _), (.constraint, _): true
        case (.other, 1), (.other, 20), (.other, 25): true
        // The plain code only: the extended ones tell of files that were moved or locks that cannot be had.
        case (.readOnly, _):
            code == 8 && access(path, W_OK) == 0 && access(FilePath.parent(of: path), W_OK) == 0
        default: false
        }
    }
}
