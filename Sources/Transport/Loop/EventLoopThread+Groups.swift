// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// The sessions that share the loop. What belongs to one of them is in its group; what the loop has for all is safe to share, because
// - a connection is found by its socket or its group's key (`connections`, `sockets`, `closeNotifyTracker`), and libcurl looks for one to
//   use again, and for a TLS session, in its multi handle or share, which a group has for itself;
// - decisions on certificates have their group's number (`trust`);
// - handles leave the TLS sessions of a group before they are given to another one (`pool`);
// - the proxies are the process's, and a store of alternative services serves the sessions that were given it.

extension EventLoopThread {
    /// The group of a transfer or stream, which is made for the first one.
    func group(of session: TransferGroup?) -> ConnectionGroup {
        guard let session else { return main }
        if let group = groups[session.number] { return group }
        let group = ConnectionGroup(number: session.number, configuration: session.configuration)
        groups[session.number] = group
        return group
    }

    /// The group with a number; `nil` if it has had no transfer.
    func group(_ number: Int) -> ConnectionGroup? { number == 0 ? main : groups[number] }

    /// A pooled connection was closed.
    func connectionClosed(ofGroup number: Int) { group(number)?.closed() }

    /// Pools were closed because they were not used.
    func closedPools(of group: ConnectionGroup) {
        guard !endedGroups.isEmpty, group.pools == nil, group.poolsForPausing == nil else { return }
        endedGroups.removeAll { $0 === group }
    }

    /// Completes the transfers and streams of a session that has ended, and closes its connections.
    func end(group number: Int) {
        collectCompleted()
        guard let group = groups[number] else { return }
        groups[number] = nil
        // Those that wait have no turn any more.
        group.launchQueue = LaunchQueue(limit: nil)
        let transfers = transfers.values.filter { $0.group === group }
        for transfer in transfers {
            transfer.giveUp()
            complete(transfer, error: CurlewError.sessionInvalidated)
        }
        let streams = streams.values.filter { $0.group === group }
        for stream in streams {
            stream.giveUp()
            complete(stream, error: CurlewError.sessionInvalidated)
        }
        unreadStreams.removeAll { $0.group === group }
        for member in transfers + pool as [MultiMember] + streams where member.group === group { member.enter(main) }
        trust.forget(group: number)
        close(group)
    }

    private func close(_ group: ConnectionGroup) {
        guard group.resolvesUntil > now else { return group.close() }
        endIdleConnections(ofGroup: group.number)
        endedGroups.append(group)
        group.pools?.considerDisuse()
        group.poolsForPausing?.considerDisuse()
    }
}
