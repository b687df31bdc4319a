// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Transfers of a transport with several loops, whose places a dispatcher gives.

extension EventLoopThread {
    /// A transfer with a slot has arrived: begins it, lets it wait, or moves it to the loop with its place.
    func enter(_ transfer: Transfer, _ slot: LoopSlot) {
        transfer.exchange.isQueuedByLoop = !slot.isShared
        guard let place = slot.currentPlace else { return wait(transfer) }
        begin(transfer, slot, at: place)
    }

    /// Lets a transfer wait for a place; to open a connection ahead is pointless where all of the host's are in use.
    func wait(_ transfer: Transfer) {
        if transfer.request.opensConnectionOnly { complete(transfer, error: nil) } else { armTimer(transfer) }
    }

    /// A transfer that has waited has got its place, unless it has ended meanwhile.
    func launchWaiting(_ id: Int) {
        guard let transfer = transfers[id], transfer.exchange.launchedAt == 0, let slot = transfer.slot, let place = slot.currentPlace
        else {
            return
        }
        begin(transfer, slot, at: place)
    }

    private func begin(_ transfer: Transfer, _ slot: LoopSlot, at place: Int) {
        guard place != mailbox.index else { return launch(transfer) }
        let isSuspended = transfer.exchange.pauses.isSuspended
        transfers[transfer.number] = nil
        let source = transfer.giveAway()
        pool.append(transfer)
        slot.move(source, to: place, isSuspended: isSuspended)
    }

    /// Sends on a command whose transfer may have moved to another loop while the command was queued here.
    func forward(_ command: CurlTransport.Command, for id: Int) {
        guard mailbox.count > 1 else { return }
        mailbox.dispatcher?.forward(command, for: id, from: mailbox.index)
    }
}
