// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewHTTP

/// The part of a cluster's keys that one node owns at a time, by the cluster specification of Redis.
enum HashSlot {
    static let count = 16_384

    /// The slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key.
    static func slot(of key: some Collection<UInt8>) -> Int { tag(of: key).map { crc($0) } ?? crc(key) }

    /// The hash tag of a key: the text between its first `{` and the next `}`, if that is not empty.
    static func tag<Key: Collection<UInt8>>(of key: Key) -> Key.SubSequence? {
        guard let open = key.firstIndex(of: UInt8(ascii: "{")) else { return nil }
        let rest = key[key.index(after: open)...]
        guard let close = rest.firstIndex(of: UInt8(ascii: "}")), close != rest.startIndex else { return nil }
        return rest[..<close]
    }

    private static func crc(_ bytes: some Sequence<UInt8>) -> Int {
        var crc: UInt16 = 0
        for byte in bytes {
            crc ^= UInt16(byte) << 8
            for _ in 0..<8 { crc = crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
        }
        return Int(crc) % count
    }
}

extension [RedisArgument] {
    /// The commands in use that have no key as their first argument.
    private static let keyless: Set = ["PING", "ECHO", "INFO", "CLIENT", "CONFIG", "SCRIPT", "PUBLISH", "SCAN", "CLUSTER", "ROLE"]

    /// The slot of the command's first key, with which the others share a tag; `nil` for a command without keys.
    var slot: Int? {
        guard case .text(let name)? = first else { return nil }
        let key: RedisArgument?
        switch name {
        case "EVAL", "EVALSHA":
            guard count > 3, case .number(1...) = self[2] else { return nil }
            key = self[3]
        default: key = Self.keyless.contains(name) || count < 2 ? nil : self[1]
        }
        switch key {
        case .text(let text)?: return HashSlot.slot(of: text.utf8)
        case .bytes(let data)?: return HashSlot.slot(of: data)
        case .number(let number)?: return HashSlot.slot(of: "\(number)".utf8)
        case nil: return nil
        }
    }
}
#endif
