// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A file that exists for one request: removed when that is over, at the latest when nobody holds it any more.
final class TemporaryFile: Sendable {
    let url: URL
    private let removed = Lock(false)

    /// Takes a file, which need not be there yet.
    init(_ url: URL) {
        self.url = url
    }

    deinit {
        remove()
    }

    var isRemoved: Bool { removed.withLock { $0 } }

    /// Removes the file; again does nothing, as another one may have come in its place.
    func remove() {
        let isFirst = removed.withLock { removed in
            defer { removed = true }
            return !removed
        }
        if isFirst { unlink(url.path) }
    }
}
