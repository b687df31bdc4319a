// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

// The built-in serializers for those who call them themselves, their errors translated. What sessions do with them they translate.

extension DataResponseSerializer {
    fileprivate func translated() -> DataResponseSerializer {
        DataResponseSerializer { request, response, data, error in
            serializeResponse(request, response, data, error).mapError { AFError.translate($0) }
        }
    }
}

extension DownloadResponseSerializer {
    /// Makes a serializer that does with the file's content what another one does with a body.
    fileprivate init(translating content: DataResponseSerializer<Value>) {
        let serializer = DownloadResponseSerializer(of: content)
        self.init { request, response, fileURL, error in
            serializer.serializeResponse(request, response, fileURL, error).mapError { AFError.translate($0) }
        }
    }
}

extension DataRequest {
    /// A serializer that gives the body: an error if there is none; empty for the statuses 204 and 205.
    public static func dataResponseSerializer() -> DataResponseSerializer<Data> {
        CurlewCore.Serializers.data.translated()
    }

    /// A serializer that gives the body as text, in the given encoding, else in the response's charset, else in ISO 8859-1.
    public static func stringResponseSerializer(encoding: String.Encoding? = nil) -> DataResponseSerializer<String> {
        CurlewCore.Serializers.string(encoding).translated()
    }

    /// A serializer that gives what `JSONSerialization` makes of the body (RFC 8259); `NSNull` for the statuses 204 and 205.
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> DataResponseSerializer<Any> {
        CurlewCore.Serializers.json(options).translated()
    }

    /// A serializer that gives what `PropertyListSerialization` makes of the body; `NSNull` for the statuses 204 and 205.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> DataResponseSerializer<Any> {
        CurlewCore.Serializers.propertyList(options).translated()
    }
}

extension DownloadRequest {
    /// A serializer that gives the file's content.
    public static func dataResponseSerializer() -> DownloadResponseSerializer<Data> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.data)
    }

    /// A serializer that gives the file's content as text, in the given encoding, else in the response's charset, else in ISO 8859-1.
    public static func stringResponseSerializer(encoding: String.Encoding? = nil) -> DownloadResponseSerializer<String> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.string(encoding))
    }

    /// A serializer that gives what `JSONSerialization` makes of the file's content (RFC 8259).
    public static func jsonResponseSerializer(
        options: JSONSerialization.ReadingOptions = .allowFragments
    ) -> DownloadResponseSerializer<Any> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.json(options))
    }

    /// A serializer that gives what `PropertyListSerialization` makes of the file's content.
    public static func propertyListResponseSerializer(
        options: PropertyListSerialization.ReadOptions = []
    ) -> DownloadResponseSerializer<Any> {
        DownloadResponseSerializer(translating: CurlewCore.Serializers.propertyList(options))
    }
}

extension Request {
    /// The body, or why there is none; empty for the statuses 204 and 205. An error given is the result's.
    public static func serializeResponseData(response: HTTPURLResponse?, data: Data?, error: (any Error)?) -> Result<Data> {
        DataRequest.dataResponseSerializer().serializeResponse(nil, response, data, error)
    }

    /// The body as text, in the given encoding, else in the response's charset, else in ISO 8859-1. An error given is the result's.
    public static func serializeResponseString(
        encoding: String.Encoding?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<String> {
        DataRequest.stringResponseSerializer(encoding: encoding).serializeResponse(nil, response, data, error)
    }

    /// What `JSONSerialization` makes of the body (RFC 8259); `NSNull` for the statuses 204 and 205. An error given is the result's.
    public static func serializeResponseJSON(
        options: JSONSerialization.ReadingOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<Any> {
        DataRequest.jsonResponseSerializer(options: options).serializeResponse(nil, response, data, error)
    }

    /// What `PropertyListSerialization` makes of the body; `NSNull` for the statuses 204 and 205. An error given is the result's.
    public static func serializeResponsePropertyList(
        options: PropertyListSerialization.ReadOptions, response: HTTPURLResponse?, data: Data?, error: (any Error)?
    ) -> Result<Any> {
        DataRequest.propertyListResponseSerializer(options: options).serializeResponse(nil, response, data, error)
    }
}
