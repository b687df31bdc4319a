// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What both sides have agreed on about compression (RFC 7692, section 7.1).
struct DeflateAgreement: Sendable, Hashable {
    static let name = "permessage-deflate"

    var serverKeepsContext = true
    var clientKeepsContext = true
    var serverWindowBits = 15
    var clientWindowBits = 15

    /// The offer, as it stands in `Sec-WebSocket-Extensions`.
    static func offer(_ compression: WebSocketCompression) -> String {
        var offer = name
        if !compression.serverKeepsContext { offer += "; server_no_context_takeover" }
        if !compression.clientKeepsContext { offer += "; client_no_context_takeover" }
        if let bits = compression.serverMaximumWindowBits { offer += "; server_max_window_bits=\(bits)" }
        offer += "; client_max_window_bits"
        if let bits = compression.clientMaximumWindowBits { offer += "=\(bits)" }
        return offer
    }

    /// Makes an agreement on nothing in particular.
    init() {}

    /// What a server's answer to an offer means; an error says what is wrong with it.
    init(_ parameters: [ExtensionParameter], answering offer: WebSocketCompression) throws(HandshakeViolation) {
        var names: Set<String> = []
        for parameter in parameters {
            guard names.insert(parameter.name).inserted else { throw Self.violation("\(parameter.name) is there twice") }
            try take(parameter)
        }
        guard offer.serverKeepsContext || !serverKeepsContext else {
            throw Self.violation("The server keeps its context, which it was asked not to")
        }
        guard serverWindowBits <= offer.serverMaximumWindowBits ?? 15 else {
            throw Self.violation("The server's window is larger than it was asked for")
        }
        if !offer.clientKeepsContext { clientKeepsContext = false }
        if let bits = offer.clientMaximumWindowBits { clientWindowBits = min(clientWindowBits, bits) }
    }

    private mutating func take(_ parameter: ExtensionParameter) throws(HandshakeViolation) {
        switch (parameter.name, parameter.value) {
        case ("server_no_context_takeover", nil): serverKeepsContext = false
        case ("client_no_context_takeover", nil): clientKeepsContext = false
        case ("server_max_window_bits", let value?): serverWindowBits = try Self.bits(value)
        case ("client_max_window_bits", let value?): clientWindowBits = try Self.bits(value)
        default: throw Self.violation("\(parameter.name) is unknown, or has a value where none belongs, or none where one does")
        }
    }

    /// 8 to 15, without a zero before it.
    private static func bits(_ value: String) throws(HandshakeViolation) -> Int {
        guard value.utf8.first != UInt8(ascii: "0"), let bits = Int(value), (8...15).contains(bits), !value.hasPrefix("+") else {
            throw violation("\(value) is no size of a window")
        }
        return bits
    }

    private static func violation(_ message: String) -> HandshakeViolation { .invalidExtension("\(name): \(message)") }
}

/// Decompresses the messages of a connection.
final class MessageInflater {
    /// The end of each message, which is not sent (RFC 7692, section 7.2.2).
    static let tail = Data([0x00, 0x00, 0xFF, 0xFF])

    private let agreement: DeflateAgreement
    private var inflater: RawInflater?

    init(_ agreement: DeflateAgreement) {
        self.agreement = agreement
    }

    /// Decompresses a piece of a message, and hands over what comes of it until `sink` says `false`; whether it never did.
    func decompress(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Bool) throws(RawDeflateError) -> Bool {
        // Made when the first compressed message comes: many servers agree and send none.
        let inflater: RawInflater
        if let made = self.inflater { inflater = made } else { inflater = try RawInflater(windowBits: agreement.serverWindowBits) }
        self.inflater = inflater
        return try inflater.decompress(bytes, sink)
    }

    func messageEnded() {
        if !agreement.serverKeepsContext { inflater?.reset() }
    }
}

/// Compresses the messages of a connection.
final class MessageDeflater {
    private let agreement: DeflateAgreement
    private let compression: WebSocketCompression
    private var deflater: RawDeflater?

    init(_ agreement: DeflateAgreement, _ compression: WebSocketCompression) {
        self.agreement = agreement
        self.compression = compression
    }

    /// The message compressed; `nil` when it goes out as it is, as any message may.
    func compress(_ message: Data) throws(RawDeflateError) -> Data? {
        // zlib has no window of 256 bytes to compress with.
        guard message.count >= max(compression.minimumSize, 1), agreement.clientWindowBits > 8 else { return nil }
        let deflater: RawDeflater
        if let made = self.deflater {
            deflater = made
        } else {
            deflater = try RawDeflater(windowBits: agreement.clientWindowBits, level: compression.level)
        }
        self.deflater = deflater
        if !agreement.clientKeepsContext { deflater.reset() }
        return try message.readBytes { bytes throws(RawDeflateError) in try deflater.compress(bytes) }
    }
}
