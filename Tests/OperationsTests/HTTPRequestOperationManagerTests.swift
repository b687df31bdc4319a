// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewOperations
import CurlewTestSupport
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(1))) struct HTTPRequestOperationManagerTests {
    private let server: LoopbackServer
    private let manager: HTTPRequestOperationManager

    init() throws {
        server = try LoopbackServer { request, _ in
            request.path == "/api/fail" ? try .json(["why": "x"], status: 400) : try .json(["target": request.target])
        }
        manager = HTTPRequestOperationManager(baseURL: URL(string: server.url("/api")), session: makeSession())
    }

    /// The outcome of a call: the object's member `target`, or the error's code.
    private func outcome(
        _ call: (@escaping HTTPRequestOperationManager.Success, @escaping HTTPRequestOperationManager.Failure) -> HTTPRequestOperation?
    ) async -> String {
        await withTrackedContinuation { continuation in
            _ = call { _, object in
                continuation.resume(returning: (object as? [String: Any])?["target"] as? String ?? "no object")
            } _: { operation, error in
                continuation.resume(returning: "\((error as? URLError)?.code.rawValue ?? 0) \(operation == nil)")
            }
        }
    }

    @Test("each method has a function, which resolves URLs against the base URL")
    func methods() async throws {
        #expect(manager.baseURL?.absoluteString == server.url("/api/"))
        let parameters = ["a": 1]
        #expect(await outcome { manager.get("one", parameters: parameters, success: $0, failure: $1) } == "/api/one?a=1")
        #expect(await outcome { manager.post("two", parameters: parameters, success: $0, failure: $1) } == "/api/two")
        #expect(await outcome { manager.put("three", parameters: parameters, success: $0, failure: $1) } == "/api/three")
        #expect(await outcome { manager.patch("four", parameters: parameters, success: $0, failure: $1) } == "/api/four")
        #expect(await outcome { manager.delete("five", parameters: parameters, success: $0, failure: $1) } == "/api/five?a=1")
        let form = await outcome { success, failure in
            manager.post(
                "six", parameters: parameters, constructingBodyWith: { $0.append(Data("x".utf8), withName: "b") }, success: success,
                failure: failure)
        }
        #expect(form == "/api/six")
        let head: Int? = await withTrackedContinuation { continuation in
            manager.head("seven") {
                continuation.resume(returning: $0.response?.statusCode)
            } failure: { _, _ in
                continuation.resume(returning: nil)
            }
        }
        #expect(head == 200)
        #expect(server.requests.map(\.method) == ["GET", "POST", "PUT", "PATCH", "DELETE", "POST", "HEAD"])
        #expect(String(decoding: server.requests[1].body, as: UTF8.self) == "a=1")
        #expect(server.requests[5].header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(await outcome { manager.get(server.url("/whole"), success: $0, failure: $1) } == "/whole")
        // What is invalid is encoded, and escapes are not encoded again.
        #expect(await outcome { manager.get("a%20b?f[n]=c%2Fd", success: $0, failure: $1) } == "/api/a%20b?f%5Bn%5D=c%2Fd")
    }

    @Test("a rejected response fails; a request that can't be created returns no operation, and fails later")
    func failures() async throws {
        #expect(await outcome { manager.get("fail", success: $0, failure: $1) } == "-1011 false")
        manager.requestSerializer = JSONRequestSerializer()
        #expect(manager.post("x", parameters: ["a": Date()]) == nil)
        #expect(await outcome { manager.post("x", parameters: ["a": Date()], success: $0, failure: $1) } == "0 true")
        let lost = HTTPRequestOperationManager(session: makeSession())
        #expect(lost.get("relative") == nil)
    }

    @Test("operations have the manager's settings, and the number of concurrent ones is limited")
    func settings() async throws {
        let queue = DispatchQueue(label: "manager")
        let group = DispatchGroup()
        manager.completionQueue = queue
        manager.completionGroup = group
        manager.credential = URLCredential(user: "a", password: "b", persistence: .none)
        manager.shouldUseCredentialStorage = false
        manager.securityPolicy.validatesDomainName = false
        manager.responseSerializer = HTTPResponseSerializer()
        manager.operationQueue.maxConcurrentOperationCount = 2
        let operation = try #require(manager.get("one"))
        #expect(operation.completionQueue === queue && operation.completionGroup === group && operation.session === manager.session)
        #expect(operation.credential?.user == "a" && !operation.shouldUseCredentialStorage && !operation.securityPolicy.validatesDomainName)
        #expect(operation.responseSerializer is HTTPResponseSerializer)
        _ = try await operation.value
        #expect(manager.reachability?.status == .unknown)
    }

    @Test("copies and archives have the settings and an empty queue")
    func copies() throws {
        manager.operationQueue.maxConcurrentOperationCount = 3
        manager.operationQueue.isSuspended = true
        manager.get("one")
        manager.requestSerializer.setValue("1", forHTTPHeaderField: "X-One")
        manager.securityPolicy.validatesDomainName = false
        let copy = try #require(manager.copy() as? HTTPRequestOperationManager)
        #expect(copy.operationQueue.operations.isEmpty && copy.operationQueue.maxConcurrentOperationCount == 3)
        #expect(copy.baseURL == manager.baseURL && copy.requestSerializer.value(forHTTPHeaderField: "X-One") == "1")
        copy.requestSerializer.setValue("2", forHTTPHeaderField: "X-One")
        #expect(manager.requestSerializer.value(forHTTPHeaderField: "X-One") == "1")
        let data = try JSONEncoder().encode(manager.archive())
        let restored = HTTPRequestOperationManager(archive: try JSONDecoder().decode(HTTPRequestOperationManager.Archive.self, from: data))
        #expect(restored.baseURL == manager.baseURL && restored.securityPolicy == manager.securityPolicy)
        #expect(restored.operationQueue.maxConcurrentOperationCount == 3 && restored.operationQueue.operations.isEmpty)
        manager.operationQueue.cancelAllOperations()
        manager.operationQueue.isSuspended = false
    }

    @Test("serializers of this module are archived", arguments: 0..<3)
    func archivedSerializers(kind: Int) throws {
        let json = JSONRequestSerializer(writingOptions: .sortedKeys)
        manager.requestSerializer = [HTTPRequestSerializer(), json, PropertyListRequestSerializer(format: .binary)][kind]
        manager.requestSerializer.setValue("1", forHTTPHeaderField: "X-One")
        manager.requestSerializer.httpMethodsEncodingParametersInURI = ["GET"]
        manager.requestSerializer.timeoutInterval = 7
        manager.requestSerializer.cachePolicy = .returnCacheDataDontLoad
        manager.responseSerializer = PropertyListResponseSerializer()
        func restore() throws -> HTTPRequestOperationManager {
            let data = try JSONEncoder().encode(manager.archive())
            return HTTPRequestOperationManager(archive: try JSONDecoder().decode(HTTPRequestOperationManager.Archive.self, from: data))
        }
        let serializer = try restore().requestSerializer
        #expect(type(of: serializer) == type(of: manager.requestSerializer) && serializer.headers == manager.requestSerializer.headers)
        #expect(serializer.httpMethodsEncodingParametersInURI == ["GET"] && serializer.timeoutInterval == 7)
        #expect(serializer.cachePolicy == .returnCacheDataDontLoad)
        #expect(kind != 1 || (serializer as? JSONRequestSerializer)?.writingOptions == .sortedKeys)
        #expect(kind != 2 || (serializer as? PropertyListRequestSerializer)?.format == .binary)
        #expect(try restore().responseSerializer is PropertyListResponseSerializer)
        // A closure can't be archived, so the default serializer is restored.
        manager.requestSerializer.setQueryStringSerialization { _, _ in "" }
        #expect(try type(of: restore().requestSerializer) == HTTPRequestSerializer.self)
        #expect(try restore().requestSerializer.value(forHTTPHeaderField: "X-One") == nil)
    }

    @Test("an operation is restored with its own serializer, or with the manager's if that can't be archived")
    func serializerOfAnOperation() throws {
        let operation = manager.httpRequestOperation(with: try manager.requestSerializer.request(method: "GET", url: server.url))
        operation.responseSerializer = ImageResponseSerializer()
        #expect(try manager.httpRequestOperation(from: operation.archive()).responseSerializer is ImageResponseSerializer)
        struct Other: ResponseSerialization {
            var acceptance = ResponseAcceptance()
            func object(of data: Data, in response: HTTPURLResponse?) -> Any? { nil }
        }
        operation.responseSerializer = Other()
        #expect(try manager.httpRequestOperation(from: operation.archive()).responseSerializer is JSONResponseSerializer)
    }

    @Test("an archived operation is restored with the manager's settings")
    func archives() async throws {
        let operation = manager.httpRequestOperation(with: try manager.requestSerializer.request(method: "GET", url: server.url))
        let archive = operation.archive()
        operation.cancel()
        let restored: String = await withTrackedContinuation { continuation in
            do {
                let operation = try manager.httpRequestOperation(from: archive) { _, object in
                    continuation.resume(returning: (object as? [String: Any])?["target"] as? String ?? "")
                }
                manager.operationQueue.addOperation(operation)
            } catch {
                continuation.resume(returning: "\(error)")
            }
        }
        #expect(restored == "/")
    }
}
