// The C library under its name on Apple's systems.
@_exported import Glibc
