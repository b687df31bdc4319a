// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSigning
import Foundation

/// `webhooks JOURNAL [--any-address]` is the service: its secret is in `WEBHOOK_SECRET`, and delays other than the usual ones, in seconds, in
/// `WEBHOOK_DELAYS`. Without arguments it shows what it does, with receivers in its own process.
@main
enum Program {
    static func main() async {
        do {
            let arguments = CommandLine.arguments.dropFirst()
            guard let path = arguments.first else { return try await Demonstration.run() }
            let environment = ProcessInfo.processInfo.environment
            guard let secret = environment["WEBHOOK_SECRET"], arguments.dropFirst().allSatisfy({ $0 == "--any-address" }) else {
                end(64, "usage: WEBHOOK_SECRET=whsec_… webhooks JOURNAL [--any-address]")
            }
            let webhooks = try StandardWebhook(secret)
            var deliverer = Deliverer(
                journal: try Journal(at: URL(fileURLWithPath: path)), webhooks: webhooks,
                manager: SessionManager(configuration: .forWebhooks(to: arguments.count > 1 ? .any : .publicOnly)), report: Service.say)
            if let delays = environment["WEBHOOK_DELAYS"] {
                deliverer.delays = delays.split(separator: " ").compactMap { Double($0) }.map { .seconds($0) }
            }
            try await Service(deliverer: deliverer).run()
        } catch {
            end(1, "webhooks: \(error)")
        }
    }

    static func end(_ status: Int32, _ reason: String) -> Never {
        FileHandle.standardError.write(Data("\(reason)\n".utf8))
        exit(status)
    }
}
