// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

/// Signatures compared with those that botocore makes at the same time (`Vectors/make.py`).
// A3.1
@Suite struct BotocoreTests {
    private struct Vectors: Decodable {
        let botocore: String
        let time: Double
        let accessKeyID: String
        let secretAccessKey: String
        let vectors: [Vector]
    }

    private struct Vector: Decodable {
        let form: String
        let service: String
        let region: String
        let method: String
        let url: String
        let headers: [[String]]?
        let token: String?
        let body: String?
        let unsigned: Bool?
        let expires: Int
        let result: Result

        /// The fields that are set, by their names in lower case, or a URL.
        enum Result: Decodable {
            case fields([String: String])
            case url(String)

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if let url = try? container.decode(String.self) {
                    self = .url(url)
                } else {
                    self = .fields(try container.decode([String: String].self))
                }
            }
        }
    }

    private func problem(with vector: Vector, of vectors: Vectors) throws -> String? {
        let signer = AWSSignatureV4(service: vector.service, region: vector.region)
        let headers = HTTPHeaders(vector.headers?.map { HTTPHeader(name: $0[0], value: $0[1]) } ?? [])
        let credentials = AWSCredentials(
            accessKeyID: vectors.accessKeyID, secretAccessKey: vectors.secretAccessKey, sessionToken: vector.token)
        let date = Date(timeIntervalSince1970: vectors.time)
        switch vector.result {
        case .fields(let expected):
            let payload: AWSSignatureV4.Payload = vector.unsigned == true ? .unsigned : .body(Data((vector.body ?? "").utf8))
            let fields = try signer.sign(
                method: vector.method, url: vector.url, headers: headers, payload: payload, credentials: credentials, at: date)
            let found = Dictionary(uniqueKeysWithValues: fields.map { ($0.name.lowercased(), $0.value) })
            return found == expected ? nil : "\(vector.url) \(vector.headers ?? []): \(found), not \(expected)"
        case .url(let expected):
            let url = try signer.presign(
                method: vector.method, url: vector.url, headers: headers, expiresIn: .seconds(vector.expires), credentials: credentials,
                at: date)
            return url.hasSameBytes(as: expected) ? nil : "\(vector.url) \(vector.headers ?? []): \(url), not \(expected)"
        }
    }

    @Test func `every signature is botocore's`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Vectors/botocore.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        for vector in vectors.vectors {
            if let problem = try problem(with: vector, of: vectors) { Issue.record("\(problem)") }
        }
        #expect(vectors.vectors.count > 370)
    }

    @Test(.enabled { try await hasBotocore() }, .timeLimit(.minutes(1))) func `the stored signatures are those of the installed botocore`()
        async throws
    {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Vectors")
        let process = try ChildProcess(Servers.python, folder.appendingPathComponent("make.py").path)
        let (status, output) = await process.finish()
        #expect(status == 0)
        let stored = try String(contentsOf: folder.appendingPathComponent("botocore.json"), encoding: .utf8).split(separator: "\n")
        // All but the first line, which has the version.
        for (line, expected) in zip(output, stored).dropFirst() where !line.elementsEqual(expected) {
            Issue.record("\(line), not \(expected)")
        }
        #expect(output.count == stored.count)
    }

    private static func hasBotocore() async throws -> Bool {
        if Servers.areRequired { return true }
        guard ChildProcess.path(of: Servers.python) != nil else { return false }
        return try await ChildProcess(Servers.python, "-c", "import botocore; raise SystemExit(botocore.__version__ < '1.44')").finish()
            .status == 0
    }
}
