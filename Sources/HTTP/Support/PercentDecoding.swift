// SPDX-License-Identifier: Apache-2.0

extension Collection<UInt8> {
    /// The bytes percent-decoded (RFC 3986, section 2.1); invalid escapes are kept.
    @inlinable package var percentDecoded: [UInt8] {
        guard contains(UInt8(ascii: "%")) else { return Array(self) }
        var (bytes, rest) = ([UInt8](), self[...])
        bytes.reserveCapacity(count)
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first?.hexValue, let low = rest.dropFirst().first?.hexValue {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// The bytes of a name or value as `application/x-www-form-urlencoded` means them: a plus sign stands for a space.
    @inlinable package var formDecoded: [UInt8] {
        map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }.percentDecoded
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit, in upper or lower case; `nil` for another byte.
    @inlinable package var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - 0x30
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - 0x37
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - 0x57
        default: nil
        }
    }
}
