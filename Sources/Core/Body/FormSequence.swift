// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The source of a form's part that is an asynchronous sequence.
struct FormSequence: Sendable {
    /// The body of the only upload that can send it; `nil` if each upload makes one of its own.
    private let only: Lock<SequenceBody?>?
    private let reader: any SequenceReader

    init(_ reader: any SequenceReader, makesSequences: Bool) {
        self.reader = reader
        only = makesSequences ? nil : Lock(SequenceBody(reader, makesSequences: false))
    }

    /// Returns the body for an upload; `nil` if the sequence belongs to another one.
    func takeBody() -> SequenceBody? {
        guard let only else { return SequenceBody(reader, makesSequences: true) }
        return only.withLock { body in
            defer { body = nil }
            return body
        }
    }
}

extension MultipartFormData {
    /// Appends an asynchronous sequence of pieces as a file, with its name and content type.
    ///
    /// An upload of the form reads it while it is sent, and fails if it has fewer or more than `length` bytes. It can be sent once: see
    /// ``SessionManager/upload(_:length:to:method:headers:trailers:interceptor:options:)-(S,_,_,_,_,_,_,_)``. ``encode()`` can't wait for
    /// it, and throws.
    public func append<S: AsyncSequence & Sendable>(
        _ sequence: S, withLength length: UInt64, name: String, fileName: String, mimeType: String
    ) where S.Element: Collection, S.Element.Element == UInt8 {
        let source = FormSequence(MadeSequenceReader { sequence }, makesSequences: false)
        append(other: source, withLength: length, name: name, fileName: fileName, mimeType: mimeType)
    }

    /// Appends the asynchronous sequence that a closure returns as a file, with its name and content type.
    ///
    /// As the one above, but for the closure, which returns a sequence with the same bytes for each upload, attempt and follow-up.
    public func append<S: AsyncSequence>(
        _ makeSequence: @escaping @Sendable () async throws -> S, withLength length: UInt64, name: String, fileName: String,
        mimeType: String
    ) where S.Element: Collection, S.Element.Element == UInt8 {
        let source = FormSequence(MadeSequenceReader(make: makeSequence), makesSequences: true)
        append(other: source, withLength: length, name: name, fileName: fileName, mimeType: mimeType)
    }
}
