// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A transport in front of another one, to which it forwards all calls that it does not implement itself.
package protocol ForwardingTransport: Transport {
    /// The other transport.
    var base: any Transport { get }
}

extension ForwardingTransport {
    package func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        base.makeTransfer(request, id: id, observer: observer)
    }

    package func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        base.makeStream(request, id: id, observer: observer)
    }

    package func shutDown() { base.shutDown() }

    package func waitUntilShutDown() async { await base.waitUntilShutDown() }
}
