// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The events that a socket is watched for, or that were reported for it.
package struct SocketEvents: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let readable = SocketEvents(rawValue: 1)
    package static let writable = SocketEvents(rawValue: 2)
    package static let failed = SocketEvents(rawValue: 4)
}

/// The operating system's facility for waiting for many sockets.
///
/// Confined to one thread, except ``wakeUp``. All differences between systems are in this file: Linux has epoll and an eventfd, others wait
/// with `poll` and are woken through a pipe.
package protocol Poller: AnyObject {
    /// Throws the system's error if the process is out of descriptors.
    init() throws
    /// Changes the events that a socket is watched for; an empty set stops watching.
    ///
    /// Returns 0, or the system's error number if the socket could not be watched: no event would ever be reported for it.
    func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32
    /// Forgets a closed descriptor, which the system removes by itself.
    func forget(_ socket: Int32)
    /// Waits for an event, at most for the given time, or without limit if it is negative. Then calls `onWake` once, and `onEvent` for
    /// each ready socket. Returns `false` if more sockets may be ready, which the next wait reports.
    func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool
    /// Ends a wait.
    var wakeUp: WakeUp { get }
}

/// Ends a poller's wait. Thread-safe.
package final class WakeUp: Sendable {
    /// Readable after ``signal()``.
    package let descriptor: Int32
    private let writeEnd: Int32

    #if os(Linux)
    package init() throws {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        writeEnd = descriptor
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
    }
    #else
    package init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        descriptor = ends[0]
        writeEnd = ends[1]
    }
    #endif

    deinit {
        close(descriptor)
        if writeEnd != descriptor { close(writeEnd) }
    }

    /// Makes the descriptor readable. If its buffer is full, it is readable already.
    package func signal() {
        var one: UInt64 = 1
        while write(writeEnd, &one, 8) < 0, errno == EINTR {}
    }

    /// Resets the descriptor for the next signal.
    package func drain() {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 8) { buffer in
            while read(descriptor, buffer.baseAddress, 64) == 64 {}
        }
    }
}

#if os(Linux)
/// A poller on `epoll`, level-triggered: the cost of a wait doesn't grow with the number of watched sockets.
package final class EpollPoller: Poller {
    private let descriptor: Int32
    private static let capacity = 256
    // Not a buffer pointer: from glibc 2.41 on, epoll_wait takes no optional pointer.
    private let events: UnsafeMutablePointer<epoll_event>
    package let wakeUp: WakeUp

    package init() throws {
        wakeUp = try WakeUp()
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        events = .allocate(capacity: Self.capacity)
        events.initialize(repeating: epoll_event(), count: Self.capacity)
        // Edge-triggered: every signal is a separate event, and the counter need not be read.
        var event = epoll_event(events: EPOLLIN.rawValue | EPOLLET.rawValue, data: epoll_data_t(fd: wakeUp.descriptor))
        guard epoll_ctl(descriptor, EPOLL_CTL_ADD, wakeUp.descriptor, &event) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .ENOMEM)
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        events.deallocate()
    }

    package func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32 {
        guard !new.isEmpty else {
            // A descriptor that can't be removed isn't watched any more.
            _ = control(EPOLL_CTL_DEL, socket, new)
            return 0
        }
        return control(old.isEmpty ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, new)
    }

    package func forget(_ socket: Int32) {}

    package func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool {
        let count = epoll_wait(descriptor, events, Int32(Self.capacity), milliseconds)
        onWake()
        guard count > 0 else { return count == 0 }
        for event in UnsafeBufferPointer(start: events, count: Int(count)) {
            if event.data.fd != wakeUp.descriptor { onEvent(event.data.fd, Self.found(event.events)) }
        }
        return count < Self.capacity
    }

    private func control(_ operation: Int32, _ socket: Int32, _ wanted: SocketEvents) -> Int32 {
        var event = epoll_event()
        if wanted.contains(.readable) { event.events |= EPOLLIN.rawValue }
        if wanted.contains(.writable) { event.events |= EPOLLOUT.rawValue }
        event.data.fd = socket
        guard epoll_ctl(descriptor, operation, socket, &event) != 0 else { return 0 }
        // The descriptor was closed or opened without notice; what matters is that it is watched.
        let other: Int32? =
            switch (errno, operation) {
            case (ENOENT, EPOLL_CTL_MOD): EPOLL_CTL_ADD
            case (EEXIST, EPOLL_CTL_ADD): EPOLL_CTL_MOD
            default: nil
            }
        guard let other else { return errno }
        return epoll_ctl(descriptor, other, socket, &event) == 0 ? 0 : errno
    }

    private static func found(_ mask: UInt32) -> SocketEvents {
        var result: SocketEvents = []
        if mask & (EPOLLIN.rawValue | EPOLLHUP.rawValue) != 0 { result.insert(.readable) }
        if mask & EPOLLOUT.rawValue != 0 { result.insert(.writable) }
        if mask & EPOLLERR.rawValue != 0 { result.insert(.failed) }
        return result
    }
}

/// The system's poller.
package typealias SystemPoller = EpollPoller
#else
/// The system's poller.
package typealias SystemPoller = PollPoller
#endif

/// A poller on `poll`, which every system has; the cost of a wait grows with the number of sockets.
package final class PollPoller: Poller {
    private var entries: [pollfd] = []
    private var index: [Int32: Int] = [:]
    package let wakeUp: WakeUp

    package init() throws {
        wakeUp = try WakeUp()
        entries.append(pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0))
    }

    package func watch(_ socket: Int32, from old: SocketEvents, to new: SocketEvents) -> Int32 {
        guard !new.isEmpty else {
            forget(socket)
            return 0
        }
        var mask = Int16(0)
        if new.contains(.readable) { mask |= Int16(POLLIN) }
        if new.contains(.writable) { mask |= Int16(POLLOUT) }
        if let place = index[socket] {
            entries[place].events = mask
        } else {
            index[socket] = entries.count
            entries.append(pollfd(fd: socket, events: mask, revents: 0))
        }
        return 0
    }

    package func forget(_ socket: Int32) {
        guard let place = index.removeValue(forKey: socket) else { return }
        let last = entries.removeLast()
        guard place < entries.count else { return }
        entries[place] = last
        index[last.fd] = place
    }

    package func wait(milliseconds: Int32, onWake: () -> Void, onEvent: (Int32, SocketEvents) -> Void) -> Bool {
        let count = poll(&entries, nfds_t(entries.count), milliseconds)
        onWake()
        guard count > 0 else { return count == 0 }
        if entries[0].revents != 0 { wakeUp.drain() }
        // The handlers may change the entries, so the results are copied first.
        let found = entries.dropFirst().filter { $0.revents != 0 }
        for entry in found { onEvent(entry.fd, Self.found(Int32(entry.revents))) }
        return true
    }

    private static func found(_ mask: Int32) -> SocketEvents {
        var result: SocketEvents = []
        if mask & Int32(POLLIN | POLLHUP) != 0 { result.insert(.readable) }
        if mask & Int32(POLLOUT) != 0 { result.insert(.writable) }
        if mask & Int32(POLLERR | POLLNVAL) != 0 { result.insert(.failed) }
        return result
    }
}
