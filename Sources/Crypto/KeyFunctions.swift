// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The functions of libcrypto 3 for asymmetric keys, looked up in the process: those of the copy that libcurl uses.
struct KeyFunctions: Sendable {
    typealias Text = UnsafePointer<CChar>
    typealias Bytes = UnsafePointer<UInt8>
    typealias Free = @convention(c) (OpaquePointer?) -> Void
    typealias NewDecoder =
        @convention(c) (UnsafeMutablePointer<OpaquePointer?>, Text?, Text?, Text?, Int32, OpaquePointer?, Text?) -> OpaquePointer?
    typealias Decode = @convention(c) (OpaquePointer, UnsafeMutablePointer<Bytes?>, UnsafeMutablePointer<Int>) -> Int32
    typealias SetPassphrase = @convention(c) (OpaquePointer, Bytes?, Int) -> Int32
    typealias NewEncoder = @convention(c) (OpaquePointer, Int32, Text?, Text?, Text?) -> OpaquePointer?
    typealias Encode =
        @convention(c) (OpaquePointer, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>) -> Int32
    typealias FreeBytes = @convention(c) (UnsafeMutableRawPointer?, Int, Text?, Int32) -> Void
    typealias TypeName = @convention(c) (OpaquePointer) -> Text?
    typealias GroupName = @convention(c) (OpaquePointer, UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?) -> Int32
    typealias Octets = @convention(c) (OpaquePointer, Text, UnsafeMutablePointer<UInt8>?, Int, UnsafeMutablePointer<Int>) -> Int32
    typealias Number = @convention(c) (OpaquePointer, Text, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    typealias NumberBits = @convention(c) (OpaquePointer) -> Int32
    typealias NumberBytes = @convention(c) (OpaquePointer, UnsafeMutablePointer<UInt8>, Int32) -> Int32
    typealias Make = @convention(c) () -> OpaquePointer?
    typealias Begin =
        @convention(c) (OpaquePointer, UnsafeMutablePointer<OpaquePointer?>, Text?, OpaquePointer?, Text?, OpaquePointer, OpaquePointer?)
        -> Int32
    typealias Sign = @convention(c) (OpaquePointer, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int>, Bytes?, Int) -> Int32
    typealias Verify = @convention(c) (OpaquePointer, Bytes?, Int, Bytes?, Int) -> Int32
    typealias SetNumber = @convention(c) (OpaquePointer?, Int32) -> Int32
    typealias Mark = @convention(c) () -> Int32

    /// The process' functions, or the first that it lacks.
    static let system = Result { () throws(CryptoError) in try KeyFunctions() }

    let newDecoder: NewDecoder
    let setPassphrase: SetPassphrase
    let decode: Decode
    let freeDecoder: Free
    let newEncoder: NewEncoder
    let encode: Encode
    let freeEncoder: Free
    let freeBytes: FreeBytes
    let freeKey: Free
    let typeName: TypeName
    let groupName: GroupName
    let bits: NumberBits
    let octets: Octets
    let number: Number
    let numberBits: NumberBits
    let numberBytes: NumberBytes
    let freeNumber: Free
    let newContext: Make
    let freeContext: Free
    let beginSigning: Begin
    let sign: Sign
    let beginVerifying: Begin
    let verify: Verify
    let setPadding: SetNumber
    let setSaltLength: SetNumber
    private let (setMark, popToMark): (Mark, Mark)

    /// Looks the functions up, as in a process that lacks some.
    init(without missing: Set<String> = []) throws(CryptoError) {
        func find<Function>(_ name: String) throws(CryptoError) -> Function {
            guard !missing.contains(name), let function = processFunction(name, as: Function.self) else { throw .unavailable(name) }
            return function
        }
        newDecoder = try find("OSSL_DECODER_CTX_new_for_pkey")
        setPassphrase = try find("OSSL_DECODER_CTX_set_passphrase")
        decode = try find("OSSL_DECODER_from_data")
        freeDecoder = try find("OSSL_DECODER_CTX_free")
        newEncoder = try find("OSSL_ENCODER_CTX_new_for_pkey")
        encode = try find("OSSL_ENCODER_to_data")
        freeEncoder = try find("OSSL_ENCODER_CTX_free")
        freeBytes = try find("CRYPTO_clear_free")
        freeKey = try find("EVP_PKEY_free")
        typeName = try find("EVP_PKEY_get0_type_name")
        groupName = try find("EVP_PKEY_get_group_name")
        bits = try find("EVP_PKEY_get_bits")
        octets = try find("EVP_PKEY_get_octet_string_param")
        number = try find("EVP_PKEY_get_bn_param")
        numberBits = try find("BN_num_bits")
        numberBytes = try find("BN_bn2binpad")
        freeNumber = try find("BN_clear_free")
        newContext = try find("EVP_MD_CTX_new")
        freeContext = try find("EVP_MD_CTX_free")
        beginSigning = try find("EVP_DigestSignInit_ex")
        sign = try find("EVP_DigestSign")
        beginVerifying = try find("EVP_DigestVerifyInit_ex")
        verify = try find("EVP_DigestVerify")
        setPadding = try find("EVP_PKEY_CTX_set_rsa_padding")
        setSaltLength = try find("EVP_PKEY_CTX_set_rsa_pss_saltlen")
        setMark = try find("ERR_set_mark")
        popToMark = try find("ERR_pop_to_mark")
    }

    /// Calls functions such that their errors are not left to the thread: libcurl would take them for those of a connection.
    func discardingErrors<Value>(_ body: () throws(CryptoError) -> Value) throws(CryptoError) -> Value {
        _ = setMark()
        defer { _ = popToMark() }
        return try body()
    }
}
