// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// The negotiated parameters of permessage-deflate (RFC 7692, section 7.1).
struct DeflateAgreement: Sendable, Hashable {
    static let name = "permessage-deflate"

    var serverKeepsContext = true
    var clientKeepsContext = true
    var serverWindowBits = 15
    var clientWindowBits = 15

    /// Returns the offer, as written in `Sec-WebSocket-Extensions`.
    static func offer(_ compression: WebSocketCompression) -> String {
        var offer = name
        if !compression.serverKeepsContext { offer += "; server_no_context_takeover" }
        if !compression.clientKeepsContext { offer += "; client_no_context_takeover" }
        if let bits = compression.serverMaximumWindowBits { offer += "; server_max_window_bits=\(bits)" }
        offer += "; client_max_window_bits"
        if let bits = compression.clientMaximumWindowBits { offer += "=\(bits)" }
        return offer
    }

    /// Makes an agreement with the default parameters.
    init() {}

    /// Parses the parameters accepted by the server; throws if they are invalid or contradict the offer.
    init(_ parameters: [ExtensionParameter], offer: WebSocketCompression) throws(HandshakeViolation) {
        var names: Set<String> = []
        for parameter in parameters {
            guard names.insert(parameter.name).inserted else { throw Self.violation("\(parameter.name) appears twice") }
            try take(parameter)
        }
        guard offer.serverKeepsContext || !serverKeepsContext else {
            throw Self.violation("The server did not accept server_no_context_takeover")
        }
        guard serverWindowBits <= offer.serverMaximumWindowBits ?? 15 else {
            throw Self.violation("The server's window is larger than requested")
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
        default: throw Self.violation("\(parameter.name) is unknown, has an unexpected value, or lacks a value")
        }
    }

    /// Parses a window size: 8 to 15, without leading zeros.
    private static func bits(_ value: String) throws(HandshakeViolation) -> Int {
        guard value.utf8.first != UInt8(ascii: "0"), let bits = Int(value), (8...15).contains(bits), !value.hasBytePrefix("+") else {
            throw violation("\(value) is not a valid window size")
        }
        return bits
    }

    private static func violation(_ message: String) -> HandshakeViolation { .invalidExtension("\(name): \(message)") }
}

/// Decompresses the messages of a connection.
final class MessageInflater {
    /// The end of each message, which is not transmitted (RFC 7692, section 7.2.2).
    static let tail = Data([0x00, 0x00, 0xFF, 0xFF])

    private let agreement: DeflateAgreement
    private var inflater: RawInflater?

    init(_ agreement: DeflateAgreement) {
        self.agreement = agreement
    }

    /// Decompresses a piece of a message and passes the output to `sink` until that returns `false`; returns whether it never did.
    func decompress(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Bool) throws(RawDeflateError) -> Bool {
        // Created on the first compressed message, because many servers negotiate compression and never use it.
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

    /// Returns the message compressed; `nil` if it is to be sent uncompressed, which the protocol allows for each message.
    func compress(_ message: Data) throws(RawDeflateError) -> Data? {
        // zlib can't compress with a window of 256 bytes.
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
