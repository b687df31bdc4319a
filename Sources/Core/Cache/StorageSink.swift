// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP

/// Where the body of a response goes that is stored: into memory, and once it is large, and the store takes it in pieces, into that.
enum StorageSink: Sendable {
    /// The response is not stored.
    case none
    case memory(Data)
    case writing(VariantStore.Writing, count: Int)

    /// Takes in a piece; becomes ``none`` if the body is too large or can't be written.
    ///
    /// - Parameter makeWriter: begins to write a large body; `nil` if it stays in memory.
    mutating func append(
        _ bytes: UnsafeRawBufferPointer, limit: Int, makeWriter: () -> VariantStore.Writing?, countFailure: () -> Void
    ) {
        guard count + bytes.count <= limit else {
            self = .none
            return
        }
        switch self {
        case .none: break
        case .memory(var data):
            // Unshared, so that appending does not copy.
            self = .none
            data.append(contentsOf: bytes)
            guard data.count > VariantStore.largestInline, let writing = makeWriter() else {
                self = .memory(data)
                return
            }
            data.withUnsafeBytes { write($0, to: writing, count: $0.count, countFailure) }
        case .writing(let writing, let count): write(bytes, to: writing, count: count + bytes.count, countFailure)
        }
    }

    private mutating func write(
        _ bytes: UnsafeRawBufferPointer, to writing: VariantStore.Writing, count: Int, _ countFailure: () -> Void
    ) {
        do {
            try writing.writer.append(bytes)
            self = .writing(writing, count: count)
        } catch {
            if !(error is CacheStorageError) { countFailure() }
            self = .none
        }
    }

    private var count: Int {
        switch self {
        case .none: 0
        case .memory(let data): data.count
        case .writing(_, let count): count
        }
    }

    var isNone: Bool {
        if case .none = self { true } else { false }
    }
}

/// A stored body, whole or to be read in pieces.
enum ServedBytes {
    case whole(Data)
    case pieces(any CacheBodyReader)

    /// `nil` if the body is gone.
    init?(_ stored: StoredResponses.Element) {
        if let reader = stored.open() {
            self = .pieces(reader)
        } else if let data = stored.body() {
            self = .whole(data)
        } else {
            return nil
        }
    }

    var count: Int64 {
        switch self {
        case .whole(let data): Int64(data.count)
        case .pieces(let reader): reader.length
        }
    }

    /// The event that delivers a range, which is within the body.
    func event(_ offset: Int64, _ count: Int64) -> ResponsePump.Event {
        switch self {
        case .whole(let data): .bytes(count == Int64(data.count) ? data : data.dropFirst(Int(offset)).prefix(Int(count)))
        case .pieces(let reader): .stored(reader, offset: offset, count: count)
        }
    }
}
