// SPDX-License-Identifier: Apache-2.0

/// The few elements of DER (X.690) of which keys and ECDSA's signatures consist.
enum DER {
    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length = [UInt8(truncatingIfNeeded: content.count)]
        if content.count >= 0x80 {
            length = content.count.bigEndianBytes
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, elements.flatMap(\.self)) }

    static func octets(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }

    static func bits(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }

    /// A number that is not negative, of its bytes in network order.
    static func integer(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array(bytes.drop { $0 == 0 })
        return element(0x02, digits.first.map { $0 < 0x80 } ?? false ? digits : [0] + digits)
    }

    // MARK: Signatures

    /// ECDSA's two numbers, of their concatenation.
    static func signature(ofRaw raw: [UInt8]) -> [UInt8] {
        sequence(integer(Array(raw.prefix(raw.count / 2))), integer(Array(raw.suffix(raw.count / 2))))
    }

    /// The two numbers of a signature of libcrypto's, each of so many bytes; `nil` if it has another form.
    static func rawSignature(of signature: [UInt8], size: Int) -> [UInt8]? {
        guard signature.count > 2, signature[0] == 0x30, signature[1] < 0x80, Int(signature[1]) == signature.count - 2 else { return nil }
        var rest = signature[2...]
        var raw: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let length = rest.popFirst(), length < 0x80, rest.count >= length else { return nil }
            let digits = rest.prefix(Int(length)).drop { $0 == 0 }
            guard digits.count <= size else { return nil }
            raw += [UInt8](repeating: 0, count: size - digits.count) + digits
            rest = rest.dropFirst(Int(length))
        }
        return rest.isEmpty ? raw : nil
    }
}

extension Int {
    /// The bytes in network order, without leading zeros.
    fileprivate var bigEndianBytes: [UInt8] {
        withUnsafeBytes(of: bigEndian) { Array($0.drop { $0 == 0 }) }
    }
}
