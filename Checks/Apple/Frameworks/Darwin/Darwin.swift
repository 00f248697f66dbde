// The C library, under the name it has on Apple's systems.
@_exported import Glibc
