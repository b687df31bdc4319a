// SPDX-License-Identifier: Apache-2.0
#if Redis
import CHiredis
import CurlewEncoding
import CurlewHTTP

/// A response of the server.
package enum RedisValue: Sendable, Hashable {
    /// No value.
    case null
    /// A number.
    case integer(Int)
    /// A value, of any bytes.
    case bytes(Data)
    /// A short text such as `OK`.
    case status(String)
    /// An error, of the command or in an array.
    case error(String)
    /// Several responses.
    case array([RedisValue])

    /// Copies what hiredis has parsed.
    init(_ reply: UnsafePointer<redisReply>) {
        let reply = reply.pointee
        var text: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: reply.str, count: Int(reply.len)) }
        switch reply.type {
        case REDIS_REPLY_STRING: self = .bytes(Data(text))
        case REDIS_REPLY_INTEGER: self = .integer(Int(reply.integer))
        case REDIS_REPLY_STATUS: self = .status(String(decoding: text, as: UTF8.self))
        case REDIS_REPLY_ERROR: self = .error(String(decoding: text, as: UTF8.self))
        case REDIS_REPLY_ARRAY:
            let elements = UnsafeBufferPointer(start: reply.element, count: Int(reply.elements))
            self = .array(elements.map { $0.map { RedisValue($0) } ?? .null })
        default: self = .null
        }
    }

    /// The number, also of a text that is one; `nil` for anything else.
    package var integer: Int? {
        switch self {
        case .integer(let value): value
        case .bytes(let data): Int(String(decoding: data, as: UTF8.self))
        default: nil
        }
    }

    /// The bytes; `nil` for anything else.
    package var data: Data? {
        if case .bytes(let data) = self { data } else { nil }
    }

    /// The bytes as text; `nil` for anything else, and for bytes that are not UTF-8.
    package var text: String? { data.flatMap { String(validating: $0, as: UTF8.self) } }

    /// The elements; `nil` for anything else.
    package var elements: [RedisValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }
}

/// The parser of a connection's responses, by hiredis. Confined to one thread.
final class ResponseParser {
    private let reader: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<chiredis_functions>
    private let largest: Int

    /// `nil` without memory. `largest` is the size of the largest response, in bytes.
    init?(largest: Int) {
        functions = .allocate(capacity: 1)
        guard let reader = chiredis_create_reader(functions) else {
            functions.deallocate()
            return nil
        }
        self.reader = reader
        self.largest = largest
    }

    deinit {
        redisReaderFree(reader)
        functions.deallocate()
    }

    /// Parses bytes, and calls a closure with each response that is complete, until that returns `false`. Returns what is wrong with
    /// them; `nil` for nothing.
    func parse(_ bytes: UnsafeRawBufferPointer, _ receive: (RedisValue) -> Bool) -> String? {
        guard redisReaderFeed(reader, bytes.baseAddress, bytes.count) == REDIS_OK else { return problem }
        while true {
            var reply: UnsafeMutableRawPointer?
            guard redisReaderGetReply(reader, &reply) == REDIS_OK else { return problem }
            guard let reply else { break }
            defer { freeReplyObject(reply) }
            guard receive(RedisValue(reply.assumingMemoryBound(to: redisReply.self))) else { return nil }
        }
        return reader.pointee.len > largest ? "a response of more than \(largest) bytes" : nil
    }

    private var problem: String {
        withUnsafeBytes(of: &reader.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

/// What a command consists of.
package enum RedisArgument: Sendable {
    case text(String)
    case bytes(Data)
    case number(Int)
}

extension RedisArgument: ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral {
    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int) { self = .number(value) }
}

extension [UInt8] {
    /// Appends a command in RESP2: an array of byte strings.
    mutating func appendCommand(_ arguments: [RedisArgument]) {
        append(contentsOf: "*\(arguments.count)\r\n".utf8)
        for argument in arguments {
            switch argument {
            case .text(let text): appendString(text.utf8)
            case .number(let number): appendString("\(number)".utf8)
            case .bytes(let data): appendString(data)
            }
        }
    }

    private mutating func appendString(_ bytes: some Collection<UInt8>) {
        append(contentsOf: "$\(bytes.count)\r\n".utf8)
        append(contentsOf: bytes)
        append(contentsOf: "\r\n".utf8)
    }
}
#endif
