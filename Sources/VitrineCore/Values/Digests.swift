import VitrineDigests

// The names of VitrineDigests, for every file that imports this module.
package typealias CRC32C = VitrineDigests.CRC32C
package typealias Hexadecimal = VitrineDigests.Hexadecimal
package typealias MD5Digest = VitrineDigests.MD5Digest
package typealias SHA1Digest = VitrineDigests.SHA1Digest
package typealias SHA256Digest = VitrineDigests.SHA256Digest
package typealias StableHash = VitrineDigests.StableHash
