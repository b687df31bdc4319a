// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

@testable import CurlewTransport

extension FuzzTarget {
    /// Which requests share responses.
    static let partitions = [FuzzTarget(name: "partition", check: partition)]

    /// Each half of the input makes a request: those with equal parts, and no others, are of one partition.
    private static func partition(_ input: [UInt8]) throws {
        let (first, second) = (PartitionInput(input.prefix(input.count / 2)), PartitionInput(input.dropFirst(input.count / 2)))
        try require((first.partition == second.partition) == (first.parts == second.parts), "\(first.parts), \(second.parts)")
        try require(first.partition == PartitionInput(input.prefix(input.count / 2)).partition, "not the same twice")
        try require(first.partition.isEmpty == first.parts.isEmpty, "plain or not: \(first.parts)")
    }
}

/// Options and fields from the lines of an input: the first byte of a line says which.
private struct PartitionInput {
    /// What has to be equal.
    private(set) var parts: [String: [UInt8]] = [:]
    private var options = TransferOptions()
    private var headers = HTTPHeaders()

    var partition: String { TransferRequest(url: "https://host.test/", headers: headers, options: options).partition }

    init(_ input: some Sequence<UInt8>) {
        for line in Array(input).split(separator: 10) {
            guard let kind = line.first else { continue }
            let text = String(decoding: line.dropFirst(), as: UTF8.self)
            switch kind % 12 {
            case 0:
                options.addresses = .publicOnly
                parts["addresses"] = []
            case 1:
                options.tls.verifiesHostName = false
                parts["name"] = []
            case 2:
                options.tls.verifiesCertificateChain = false
                parts["chain"] = []
            case 3:
                options.tls.publicKeyHashes = [Data(text.utf8)]
                parts["pin"] = Array(text.utf8)
            case 4:
                options.tls.clientCertificate = .pem(Data(text.utf8), key: Data())
                parts["client"] = Array(text.utf8)
            case 5:
                options.connectTo = ["host": text]
                parts["connectTo"] = Array(text.utf8)
            case 6:
                options.resolve = ["host": [text]]
                parts["resolve"] = Array(text.utf8)
            case 7:
                options.dohURL = text
                parts["doh"] = Array(text.utf8)
            case 8:
                options.tls.certificateAuthorities = Data(text.utf8)
                parts["authorities"] = Array(text.utf8)
            case 9:
                headers["Host"] = text
                parts["host"] = Array((headers["Host"] ?? "").utf8)
            case 10:
                headers["X-Api-Key"] = text
                parts["key"] = Array((headers["X-Api-Key"] ?? "").utf8)
            default: headers["X-Other"] = text
            }
        }
        // A proxy may be that of the environment.
        options.proxy = .none
    }
}
