// SPDX-License-Identifier: Apache-2.0

/// SHA-256 or SHA-512 of messages that may be large, computed piece by piece.
///
/// By the libcrypto that libcurl's TLS has loaded, which uses the processor's instructions for it; in a debug build ``SHA2`` needs two
/// minutes for 200 MB. By `SHA2` in a process without libcrypto.
package struct LargeDigest<Word: SHA2Word>: ~Copyable {
    /// The shortest whole message for which libcrypto is used: for shorter ones its context costs more than `SHA2`, in a release build.
    static var shortest: Int { 256 }

    private let libcrypto: Libcrypto?
    /// libcrypto's state of the message; `nil` if `own` has it.
    private let context: OpaquePointer?
    private var own = SHA2<Word>()
    private var hasFailed = false

    /// Creates the digest of an empty message.
    package init() { self.init(by: .system) }

    init(by libcrypto: Libcrypto?) {
        self.libcrypto = libcrypto
        context = libcrypto?.begin(Word.self)
    }

    deinit { libcrypto?.free(context) }

    /// Appends bytes to the message.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let libcrypto, let context else { return own.update(bytes) }
        if libcrypto.update(context, bytes.baseAddress, bytes.count) != 1 { hasFailed = true }
    }

    /// Returns the digest; empty, which is equal to none, if libcrypto has failed.
    package consuming func finish() -> [UInt8] {
        guard let libcrypto, let context else { return own.digest() }
        return [UInt8](unsafeUninitializedCapacity: Word.bitWidth) { bytes, count in
            guard !hasFailed, libcrypto.finish(context, bytes.baseAddress, nil) == 1 else { return }
            count = Word.bitWidth
        }
    }

    /// Returns the digest of a whole message.
    package static func digest(of message: UnsafeRawBufferPointer) -> [UInt8] {
        guard message.count >= shortest else { return SHA2<Word>.digest(of: message) }
        var hash = LargeDigest()
        hash.update(message)
        let digest = hash.finish()
        return digest.isEmpty ? SHA2<Word>.digest(of: message) : digest
    }
}

/// The functions of libcrypto that compute digests, in OpenSSL 1.1.0 and later.
struct Libcrypto: Sendable {
    typealias Make = @convention(c) () -> OpaquePointer?
    typealias Free = @convention(c) (OpaquePointer?) -> Void
    typealias Start = @convention(c) (OpaquePointer, OpaquePointer?, OpaquePointer?) -> Int32
    typealias Update = @convention(c) (OpaquePointer, UnsafeRawPointer?, Int) -> Int32
    typealias Finish = @convention(c) (OpaquePointer, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>?) -> Int32

    /// The process' libcrypto; `nil` if it has none.
    static let system = Libcrypto()

    private let (make, sha256, sha512): (Make, Make, Make)
    private let start: Start
    fileprivate let (update, finish, free): (Update, Finish, Free)

    private init?() {
        guard let make = processFunction("EVP_MD_CTX_new", as: Make.self), let free = processFunction("EVP_MD_CTX_free", as: Free.self),
            let sha256 = processFunction("EVP_sha256", as: Make.self), let sha512 = processFunction("EVP_sha512", as: Make.self),
            let start = processFunction("EVP_DigestInit_ex", as: Start.self),
            let update = processFunction("EVP_DigestUpdate", as: Update.self),
            let finish = processFunction("EVP_DigestFinal_ex", as: Finish.self)
        else { return nil }
        (self.make, self.sha256, self.sha512, self.start) = (make, sha256, sha512, start)
        (self.update, self.finish, self.free) = (update, finish, free)
    }

    /// Returns a context for a message, which the caller frees; `nil` if that fails.
    fileprivate func begin<Word: SHA2Word>(_: Word.Type) -> OpaquePointer? {
        guard let context = make() else { return nil }
        if start(context, Word.bitWidth == 32 ? sha256() : sha512(), nil) == 1 { return context }
        free(context)
        return nil
    }
}
