// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// libcurl's callbacks for a transfer. Each receives a borrowed pointer to its transfer, which the event loop owns for as long as libcurl
// may call. No callback calls into libcurl or runs users' code.

extension Transfer {
    /// Receives body bytes. Returning a smaller count than given ends the transfer.
    static let writeCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return 0 }
        return context.borrow(Transfer.self) {
            $0.receive(bytes: UnsafeRawBufferPointer(start: bytes, count: size * count)).magnitudeForLibcurl
        }
    }

    /// Receives a line of the head or the trailers. Returning a smaller count than given ends the transfer.
    static let headerCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return 0 }
        return context.borrow(Transfer.self) {
            $0.receive(line: UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
    }

    /// Provides body bytes; 0 ends the body.
    static let readCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return Int(CURL_READFUNC_ABORT) }
        return context.borrow(Transfer.self) {
            $0.send(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
        }
    }

    /// Rewinds the body to its start, the only position that libcurl requests.
    static let seekCallback: ccurlew_seek_callback = { context, offset, origin in
        guard let context, offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_FAIL }
        return context.borrow(Transfer.self) { $0.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL }
    }

    /// Provides the fields that follow the body, once it has ended.
    static let trailerCallback: ccurlew_trailer_callback = { list, context in
        guard let list, let context else { return CURL_TRAILERFUNC_ABORT }
        return context.borrow(Transfer.self) { transfer in
            let isComplete = transfer.sendTrailers { line in
                // libcurl copies the line, and frees the list, also after a failure.
                guard let longer = curl_slist_append(list.pointee, line) else { return false }
                list.pointee = longer
                return true
            }
            return isComplete ? CURL_TRAILERFUNC_OK : CURL_TRAILERFUNC_ABORT
        }
    }

    /// Called when the connection is set up and before the request is sent: the last opportunity to refuse.
    static let prereqCallback: ccurlew_prereq_callback = { context, remoteAddress, localAddress, remotePort, localPort in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        return context.borrow(Transfer.self) {
            let action = $0.requestStarts(
                localPort: localPort, remotePort: remotePort, localAddress: localAddress, remoteAddress: remoteAddress)
            return action == .send ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
    }

    /// Opens a close-on-exec socket, unless its address is refused: libcurl then tries the host's next address.
    static let openSocketCallback: ccurlew_opensocket_callback = { context, _, address in
        guard let context, let address else { return CURL_SOCKET_BAD }
        return context.borrow(MultiMember.self) { member in
            guard member.mayConnect(to: ccurlew_address(address)) else { return CURL_SOCKET_BAD }
            let descriptor = SystemSocket.open(address.pointee.family, address.pointee.socktype, address.pointee.`protocol`)
            guard descriptor >= 0 else { return CURL_SOCKET_BAD }
            guard member.configure(descriptor, for: address.pointee) else {
                close(descriptor)
                return CURL_SOCKET_BAD
            }
            member.opened(descriptor)
            return descriptor
        }
    }

    /// Closes a socket after the event loop has forgotten it, because its number may be reused. The context is the loop, because
    /// connections outlive transfers.
    static let closeSocketCallback: ccurlew_closesocket_callback = { context, descriptor in
        if let context {
            context.borrow(EventLoopThread.self) { $0.willClose(descriptor) }
        }
        return close(descriptor)
    }
}

extension Int {
    /// The count that libcurl receives: a negative number becomes an impossible count, which ends the transfer.
    fileprivate var magnitudeForLibcurl: Int { self < 0 ? 0 : self }
}
