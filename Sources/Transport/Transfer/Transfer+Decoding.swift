// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

extension Transfer {
    /// Makes the decoder of the response's body, if it has codings; `false` ends the transfer.
    func makeDecoder(for head: ResponseHead) -> Bool {
        guard state.isDecoded else { return true }
        do {
            run.decoder = try BodyDecoder(for: head, maximumExpansion: request.prepared.options.maximumExpansion)
            return true
        } catch {
            _ = state.fail(error.kind, error.message)
            return false
        }
    }

    /// Decodes bytes of the response's body, as many as fit into the loop's slice. If some are left, libcurl keeps all of them, and gives
    /// them again: in a later slice, or when the observer wants more.
    func decode(_ bytes: UnsafeRawBufferPointer) -> Int {
        defer { if run.decoder?.isProgressing ?? true { lastActivity = loop.now } }
        guard !loop.decodingSlice.isOver else { return decodeLater() }
        loop.decodingSlice.begin()
        do {
            let received = state.bodyBytes + Int64(bytes.count)
            switch try run.decoder?.decode(bytes, received: received, &loop.decodingSlice, { deliver($0) }) ?? .cancelled {
            case .complete:
                state.received(bodyBytes: bytes.count)
                return endsWithResponse() ? -1 : bytes.count
            case .interrupted:
                return decodeLater()
            case .cancelled: return -1
            }
        } catch {
            state.received(bodyBytes: bytes.count)
            _ = state.fail(error.kind, error.message)
            return -1
        }
    }

    /// Stops receiving until a later slice, or until the observer wants more.
    private func decodeLater() -> Int {
        exchange.pauses.receivingStopped = true
        if !exchange.pauses.isHeld, !exchange.pauses.decodesLater {
            exchange.pauses.decodesLater = true
            loop.undecoded.append(number)
        }
        return Int(CURL_WRITEFUNC_PAUSE)
    }
}
