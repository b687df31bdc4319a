// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// AES-256-GCM (NIST SP 800-38D) by the libcrypto that libcurl uses, whose functions are looked up in the process, so that the product links
/// none itself.
package struct Cipher: Sendable {
    typealias Make = @convention(c) () -> OpaquePointer?
    typealias Free = @convention(c) (OpaquePointer?) -> Void
    typealias Begin =
        @convention(c) (
            OpaquePointer?, OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?
        ) -> Int32
    typealias Update =
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?, UnsafePointer<UInt8>?, Int32
        ) -> Int32
    typealias Finish = @convention(c) (OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?) -> Int32
    typealias Control = @convention(c) (OpaquePointer?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32

    package static let nonceLength = 12
    package static let tagLength = 16
    private static let getTag: Int32 = 0x10
    private static let setTag: Int32 = 0x11

    /// The process' cipher; `nil` if it has no libcrypto.
    package static let system = Cipher()

    private let algorithm: Make
    private let makeContext: Make
    private let freeContext: Free
    private let beginSealing: Begin
    private let seal: Update
    private let finishSealing: Finish
    private let beginOpening: Begin
    private let open: Update
    private let finishOpening: Finish
    private let control: Control

    private init?() {
        guard let algorithm = processFunction("EVP_aes_256_gcm", as: Make.self),
            let makeContext = processFunction("EVP_CIPHER_CTX_new", as: Make.self),
            let freeContext = processFunction("EVP_CIPHER_CTX_free", as: Free.self),
            let beginSealing = processFunction("EVP_EncryptInit_ex", as: Begin.self),
            let seal = processFunction("EVP_EncryptUpdate", as: Update.self),
            let finishSealing = processFunction("EVP_EncryptFinal_ex", as: Finish.self),
            let beginOpening = processFunction("EVP_DecryptInit_ex", as: Begin.self),
            let open = processFunction("EVP_DecryptUpdate", as: Update.self),
            let finishOpening = processFunction("EVP_DecryptFinal_ex", as: Finish.self),
            let control = processFunction("EVP_CIPHER_CTX_ctrl", as: Control.self)
        else { return nil }
        (self.algorithm, self.makeContext, self.freeContext, self.control) = (algorithm, makeContext, freeContext, control)
        (self.beginSealing, self.seal, self.finishSealing) = (beginSealing, seal, finishSealing)
        (self.beginOpening, self.open, self.finishOpening) = (beginOpening, open, finishOpening)
    }

    /// Encrypts bytes; returns them and the tag, which also covers `context`. `nil` if libcrypto fails.
    package func seal(_ plain: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard plain.count <= Int(Int32.max) - 64, let state = makeContext() else { return nil }
        defer { freeContext(state) }
        var (length, tag) = (Int32(0), [UInt8](repeating: 0, count: Self.tagLength))
        var sealed = [UInt8](repeating: 0, count: plain.count + 16)
        guard beginSealing(state, algorithm(), nil, key, nonce) == 1, seal(state, nil, &length, context, Int32(context.count)) == 1,
            seal(state, &sealed, &length, plain, Int32(plain.count)) == 1
        else { return nil }
        var last = [UInt8](repeating: 0, count: 16)
        var rest = Int32(0)
        guard finishSealing(state, &last, &rest) == 1, rest == 0, control(state, Self.getTag, Int32(tag.count), &tag) == 1 else {
            return nil
        }
        return sealed.prefix(Int(length)) + tag
    }

    /// Decrypts what ``seal(_:key:nonce:context:)`` has returned; `nil` if anything was changed.
    package func open(_ sealed: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard sealed.count >= Self.tagLength, sealed.count <= Int(Int32.max), let state = makeContext() else { return nil }
        defer { freeContext(state) }
        let bytes = Array(sealed.dropLast(Self.tagLength))
        var tag = Array(sealed.suffix(Self.tagLength))
        var (length, rest) = (Int32(0), Int32(0))
        var plain = [UInt8](repeating: 0, count: bytes.count + 16)
        var last = [UInt8](repeating: 0, count: 16)
        guard beginOpening(state, algorithm(), nil, key, nonce) == 1, open(state, nil, &length, context, Int32(context.count)) == 1,
            open(state, &plain, &length, bytes, Int32(bytes.count)) == 1, control(state, Self.setTag, Int32(tag.count), &tag) == 1,
            finishOpening(state, &last, &rest) == 1, rest == 0
        else { return nil }
        return Array(plain.prefix(Int(length)))
    }
}
