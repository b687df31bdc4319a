// SPDX-License-Identifier: Apache-2.0
#if Observability
import Curlew
import CurlewObservability
import CurlewSessionTestSupport
import CurlewTestSupport
import InMemoryTracing
import Testing
import Tracing

/// A program's own export of the spans, over Curlew: OTLP/HTTP with JSON (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
@Suite(.timeLimit(.minutes(1))) struct OTLPTests {
    @Test func `finished spans are exported as OTLP over HTTP`() async throws {
        let tracer = makeTracer()
        let server = try LoopbackServer.standard()
        let manager = makeManager { $0.instruments = [TracingInstrument(tracer: tracer)] }
        let parent = tracer.startSpan("work", context: .topLevel)
        let requests = ServiceContext.withValue(parent.context) { ["/redirect/1", "/status/503"].map { manager.request(server.url($0)) } }
        for request in requests { _ = try await request.serializingData().value }
        parent.end()

        let receiver = try LoopbackServer { request, _ in
            guard request.path == "/v1/traces", request.header("Content-Type") == "application/json" else { return .status(404) }
            do {
                try Self.check(try JSONSerialization.jsonObject(with: request.body))
                return .ok(#"{"partialSuccess":{}}"#, type: "application/json")
            } catch {
                return ServerResponse(status: 400, body: .data(Data("\(error)".utf8)))
            }
        }
        // Without instruments: the export is not traced.
        let exporter = makeManager()
        let export = Export(tracer.finishedSpans)
        let body = try JSONEncoder().encode(export)
        let response = await exporter.upload(body, to: receiver.url("/v1/traces"), headers: [.contentType("application/json")])
            .serializingString().response
        #expect(response.response?.statusCode == 200, "\(response)")
        #expect(export.resourceSpans.first?.scopeSpans.first?.spans.count == 4)
        // What the check refuses.
        let broken = String(decoding: body, as: UTF8.self).replacingOccurrences(of: "\"kind\":3", with: "\"kind\":\"client\"")
        #expect(throws: (any Error).self) { try Self.check(try JSONSerialization.jsonObject(with: Data(broken.utf8))) }
    }

    // MARK: The receiver, by the published form

    private struct Violation: Error {
        let text: String
    }

    /// Checks an `ExportTraceServiceRequest` in its JSON form: identifiers in hexadecimal digits, 64-bit integers as text, enumerations as
    /// numbers, names in lower camel case.
    private static func check(_ object: Any) throws {
        let spans = try list(object, "resourceSpans").flatMap { resource in
            try attributes(try field(resource, "resource"))
            return try list(resource, "scopeSpans").flatMap { scope in
                _ = try text(try field(scope, "scope"), "name")
                return try list(scope, "spans")
            }
        }
        guard !spans.isEmpty else { throw Violation(text: "no spans") }
        var identifiers: Set<String> = []
        for span in spans {
            try hexadecimal(text(span, "traceId"), 32)
            try hexadecimal(text(span, "spanId"), 16)
            guard identifiers.insert(try text(span, "spanId")).inserted else { throw Violation(text: "a span identifier twice") }
            guard try !text(span, "name").isEmpty else { throw Violation(text: "no name") }
            guard let kind = try field(span, "kind") as? Int, (1...5).contains(kind) else { throw Violation(text: "kind") }
            guard let start = UInt64(try text(span, "startTimeUnixNano")), let end = UInt64(try text(span, "endTimeUnixNano")),
                start > 1_600_000_000_000_000_000, end >= start
            else { throw Violation(text: "times") }
            try attributes(span)
            if let status = (span as? [String: Any])?["status"] as? [String: Any] {
                guard let code = status["code"] as? Int, (0...2).contains(code) else { throw Violation(text: "status") }
            }
        }
        for span in spans {
            guard let parent = (span as? [String: Any])?["parentSpanId"] as? String else { continue }
            guard identifiers.contains(parent) else { throw Violation(text: "an unknown parent") }
        }
    }

    private static func attributes(_ object: Any) throws {
        var keys: Set<String> = []
        for attribute in try list(object, "attributes") {
            guard try keys.insert(text(attribute, "key")).inserted else { throw Violation(text: "an attribute twice") }
            guard let value = try field(attribute, "value") as? [String: Any], value.count == 1, let (kind, content) = value.first else {
                throw Violation(text: "a value")
            }
            switch (kind, content) {
            case ("stringValue", _ as String), ("boolValue", _ as Bool), ("doubleValue", _ as Double): break
            case ("intValue", let number as String) where Int64(number) != nil: break
            case ("arrayValue", let array as [String: Any]) where array["values"] is [Any]: break
            default: throw Violation(text: "\(kind): \(content)")
            }
        }
    }

    private static func field(_ object: Any, _ name: String) throws -> Any {
        guard let value = (object as? [String: Any])?[name] else { throw Violation(text: "no \(name)") }
        return value
    }

    private static func list(_ object: Any, _ name: String) throws -> [Any] {
        guard let list = try field(object, name) as? [Any] else { throw Violation(text: "\(name) is no array") }
        return list
    }

    private static func text(_ object: Any, _ name: String) throws -> String {
        guard let text = try field(object, name) as? String else { throw Violation(text: "\(name) is no text") }
        return text
    }

    private static func hexadecimal(_ text: String, _ count: Int) throws {
        guard text.count == count, text.allSatisfy(\.isHexDigit), text.contains(where: { $0 != "0" }) else {
            throw Violation(text: "an identifier: \(text)")
        }
    }
}

// MARK: The exporter

/// `ExportTraceServiceRequest`.
private struct Export: Encodable {
    struct ResourceSpans: Encodable {
        let resource: Resource
        let scopeSpans: [ScopeSpans]
    }

    struct Resource: Encodable {
        let attributes: [Attribute]
    }

    struct ScopeSpans: Encodable {
        let scope: [String: String]
        let spans: [Span]
    }

    struct Span: Encodable {
        let traceId, spanId: String
        let parentSpanId: String?
        let name: String
        let kind: Int
        let startTimeUnixNano, endTimeUnixNano: String
        let attributes: [Attribute]
        let status: Status?
    }

    struct Status: Encodable {
        let code: Int
        let message: String?
    }

    struct Attribute: Encodable {
        let key: String
        let value: [String: String]
    }

    let resourceSpans: [ResourceSpans]

    init(_ spans: [FinishedInMemorySpan]) {
        let resource = Resource(attributes: [Attribute(key: "service.name", value: ["stringValue": "curlew-tests"])])
        let scope = ScopeSpans(scope: ["name": "curlew"], spans: spans.map { Span($0) })
        resourceSpans = [ResourceSpans(resource: resource, scopeSpans: [scope])]
    }
}

extension Export.Span {
    fileprivate init(_ span: FinishedInMemorySpan) {
        traceId = span.traceID
        spanId = span.spanID
        parentSpanId = span.parentSpanID
        name = span.operationName
        kind = span.kind == .client ? 3 : 1
        startTimeUnixNano = "\(span.startInstant.nanosecondsSinceEpoch)"
        endTimeUnixNano = "\(span.endInstant.nanosecondsSinceEpoch)"
        status = span.status.map { Export.Status(code: $0.code == .error ? 2 : 1, message: $0.message) }
        var attributes: [Export.Attribute] = []
        span.attributes.forEach { key, value in
            switch value {
            case .int32(let number): attributes.append(Export.Attribute(key: key, value: ["intValue": "\(number)"]))
            case .int64(let number): attributes.append(Export.Attribute(key: key, value: ["intValue": "\(number)"]))
            case .string(let text): attributes.append(Export.Attribute(key: key, value: ["stringValue": text]))
            default: attributes.append(Export.Attribute(key: key, value: ["stringValue": "\(value)"]))
            }
        }
        self.attributes = attributes
    }
}
#endif
