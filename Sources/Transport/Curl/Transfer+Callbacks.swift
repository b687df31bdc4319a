// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

// libcurl's callbacks for a transfer. Each is told the transfer it belongs to, which the event loop owns for as long as libcurl may call.
// None calls libcurl back, and none runs code of users.

extension Transfer {
    /// Takes body bytes. Fewer than given end the transfer.
    static let writeCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return 0 }
        return Unmanaged<Transfer>.fromOpaque(context)._withUnsafeGuaranteedRef {
            $0.receive(bytes: UnsafeRawBufferPointer(start: bytes, count: size * count)).magnitudeForLibcurl
        }
    }

    /// Takes a line of a head or of trailers. Fewer bytes than given end the transfer.
    static let headerCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return 0 }
        return Unmanaged<Transfer>.fromOpaque(context)._withUnsafeGuaranteedRef {
            $0.receive(line: UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
    }

    /// Gives body bytes; 0 ends the body.
    static let readCallback: ccurlew_data_callback = { bytes, size, count, context in
        guard let context else { return Int(CURL_READFUNC_ABORT) }
        return Unmanaged<Transfer>.fromOpaque(context)._withUnsafeGuaranteedRef {
            $0.send(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
        }
    }

    /// Goes back to the start of the body; libcurl asks for nothing else.
    static let seekCallback: ccurlew_seek_callback = { context, offset, origin in
        guard let context, offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_FAIL }
        return Unmanaged<Transfer>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL }
    }

    /// The connection stands and nothing of the request is sent: a last chance to refuse.
    static let prereqCallback: ccurlew_prereq_callback = { context, remoteAddress, localAddress, remotePort, localPort in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        return Unmanaged<Transfer>.fromOpaque(context)._withUnsafeGuaranteedRef {
            let action = $0.requestStarts(
                localPort: localPort, remotePort: remotePort, localAddress: localAddress, remoteAddress: remoteAddress)
            return action == .send ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
    }

    /// Makes a socket that no child process inherits, unless its address is refused: libcurl then tries the host's next one.
    static let openSocketCallback: ccurlew_opensocket_callback = { context, _, address in
        guard let context, let address else { return CURL_SOCKET_BAD }
        return Unmanaged<MultiMember>.fromOpaque(context)._withUnsafeGuaranteedRef { member in
            guard member.mayConnect(to: ccurlew_address(address)) else { return CURL_SOCKET_BAD }
            let descriptor = SystemSocket.open(address.pointee.family, address.pointee.socktype, address.pointee.`protocol`)
            guard descriptor >= 0 else { return CURL_SOCKET_BAD }
            member.opened(descriptor)
            return descriptor
        }
    }

    /// Closes a socket, which the event loop forgets before its number is used again. Told the loop: connections outlive transfers.
    static let closeSocketCallback: ccurlew_closesocket_callback = { context, descriptor in
        if let context {
            Unmanaged<EventLoopThread>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.willClose(descriptor) }
        }
        return close(descriptor)
    }
}

extension Int {
    /// The count as libcurl takes it: what is negative here is a count that can't be right there, which ends the transfer.
    fileprivate var magnitudeForLibcurl: Int { self < 0 ? 0 : self }
}
