// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewAuth
import CurlewCaching
import CurlewDownloads
import CurlewEvents
import CurlewGraphQL
import CurlewHAR
import CurlewJSON
import CurlewOperations
import CurlewRequests
import CurlewResilience
import CurlewServices
import CurlewSigning
import CurlewTesting
import CurlewURLSession
import CurlewUploads
import CurlewWebSocket

/// Public types by the folder of their module, as a program that imports all these products names them. Generic ones, and modules that
/// exist with a trait only, are left out.
let publicTypes: [String: [Any.Type]] = [
    "Auth": [
        DPoP.self, OAuthAuthenticator.self, OAuthAuthorization.self, OAuthClient.self, OAuthClientAuthentication.self,
        OAuthDeviceAuthorization.self, OAuthError.self, OAuthGrant.self, OAuthIntrospection.self, OAuthRefusal.self,
        OAuthRegisteredClient.self, OAuthRegistration.self, OAuthResource.self, OAuthServer.self, OAuthServerMetadata.self,
        OAuthTokenExchange.self, OAuthTokens.self,
        StaticCredential.self,
    ],
    "Cache": [
        (any CacheBodyReader).self, CacheEntry.self, (any CacheEntryWriter).self, CacheKey.self, CacheLease.self, CacheObservation.self,
        CacheStatus.self, (any CacheStorage).self, CacheStorageError.self, (any LeasingCacheStorage).self, MemoryCacheStorage.self,
        (any ObservableCacheStorage).self, ResponseCache.self, (any StreamingCacheStorage).self, (any TaggingCacheStorage).self,
        TieredCacheStorage.self,
    ],
    "Caching": [
        DiskCacheStorage.self
    ],
    "Cookies": [
        Cookie.self, CookieStore.self, CookieStoreError.self, HSTSHost.self, HSTSStore.self,
    ],
    "Core": [
        Adapter.self, AsyncAdapterError.self, (any AsyncAuthenticator).self, (any AsyncHeaderAdapter).self,
        (any AsyncRequestAdapter).self, (any AsyncRequestInterceptor).self, (any AsyncRequestRetrier).self,
        (any AuthenticationCredential).self, AuthenticationError.self, (any Authenticator).self, BodyStream.self, ChallengeDecision.self,
        (any CompletedResponse).self,
        ConnectionLostRetryPolicy.self, (any ContextCarrier).self, CurlewInfo.self, DataRequest.self, Deadline.self,
        DefaultDataResponse.self, DefaultDownloadResponse.self, DownloadRequest.self, (any DownloadedResponse).self,
        (any EventMonitor).self, ExchangeCompletion.self,
        (any ExchangeInstrument).self, (any ExchangeObservation).self, ForwardedRequest.self, ForwardedResponse.self,
        (any HeaderAdapter).self, (any HeaderAuthenticator).self,
        (any IdentityCredential).self,
        Interceptor.self, MonitoredEvents.self, NetworkPath.self, (any NetworkPathProvider).self, NetworkReachabilityManager.self,
        OutgoingExchange.self, PageLocation.self, PaginationError.self, PolicyReport.self, RedirectPolicy.self, Request.self,
        (any RequestAdapter).self, RequestCompression.self,
        (any RequestInterceptor).self, RequestOptions.self, (any RequestRetrier).self, RequestRetryCompletion.self, Retrier.self,
        RetryAfter.self, RetryDecision.self, RetryPolicy.self, RetryWait.self, ServerTrustDecision.self, ServerTrustPolicy.self,
        ServerTrustPolicyManager.self, Session.self, SessionConfiguration.self, SessionDelegate.self, SessionManager.self,
        SessionTask.self, StreamBytes.self, StreamRequest.self, StreamedResponse.self, SuggestedFileName.self,
        TaskDelegate.self, TaskMetrics.self, Timeline.self, (any TokenStore).self, UpgradeError.self, UpgradeRefusal.self,
        UpgradedConnection.self, (any UploadBody).self, UploadRequest.self, UploadTarget.self,
    ],
    "Downloads": [
        DownloadRateLimit.self, SegmentedDownload.self, SegmentedDownloadError.self,
    ],
    "Encoding": [
        HTTPQuery.self, HTTPQueryBuilder.self, JSONEncoding.self, JSONParameterEncoder.self, MultipartFormData.self,
        (any ParameterEncoder).self, (any ParameterEncoding).self,
        Parameters.self, PropertyListEncoding.self, URLEncodedFormEncoder.self, URLEncodedFormParameterEncoder.self, URLEncoding.self,
        (any URLRequestConvertible).self,
    ],
    "Events": [
        DecodingErrorPolicy.self, EventStream.self, EventStreamConfiguration.self, EventStreamError.self, EventStreamRejection.self,
        ServerSentEvent.self, ServerSentEventParser.self,
    ],
    "GraphQL": [
        GraphQLClient.self, GraphQLClientError.self, GraphQLConfiguration.self, GraphQLError.self, GraphQLRequest.self,
        GraphQLRetryPolicy.self, GraphQLUpload.self,
    ],
    "HAR": [
        HARRecorder.self, Waterfall.self,
    ],
    "HTTP": [
        CachePolicy.self, CacheReason.self, ContentDigest.self, CurlewError.self, (any DataDecoder).self, FailedRequest.self,
        HTTPHeader.self, HTTPHeaders.self, HTTPMethod.self, HTTPOrigin.self, HTTPPriority.self, JSONValue.self, ProblemDetails.self,
        Redaction.self, ServerRateLimit.self, StructuredFields.self, TransferFailure.self, (any URLConvertible).self, WebLink.self,
    ],
    "JSON": [
        FastJSONDecoder.self
    ],
    "Loopback": [
        CRC32.self, CertificateAuthority.self, EchoReply.self, Gate.self, GeneratedBody.self, LoopbackServer.self, ServerConnection.self,
        ServerField.self, ServerIdentity.self, ServerRequest.self, ServerResponse.self, ServerRoutes.self, ServerTLS.self,
        ServerTLSInfo.self, SocketError.self, TCPEchoServer.self, TLSError.self,
    ],
    "Operations": [
        BackgroundActivity.self, CompoundResponseSerializer.self, HTTPRequestOperation.self, HTTPRequestOperationManager.self,
        HTTPRequestSerializer.self, HTTPResponseSerializer.self, ImageHeader.self, ImageResponseSerializer.self,
        JSONRequestSerializer.self, JSONResponseSerializer.self, NetworkActivityMonitor.self, OperationArchive.self,
        OperationChallenge.self, OperationError.self, OperationErrorKey.self, OperationSession.self, OperationState.self,
        PropertyListRequestSerializer.self, PropertyListResponseSerializer.self, ReachabilityMonitor.self, ResponseAcceptance.self,
        (any ResponseSerialization).self, SecurityPolicy.self, SerializedResponse.self, StreamingMultipartFormData.self,
        URLConnectionOperation.self, XMLDocumentResponseSerializer.self, XMLParserResponseSerializer.self,
    ],
    "Requests": [
        AcceptableContentTypes.self, Activity.self, ActivityAccessory.self, (any ActivityPresenter).self, BaseRequest.self,
        BatchRequest.self, (any BatchRequestDelegate).self, (any CacheDirPathFilter).self, CachedRequest.self, ChainRequest.self,
        (any ChainRequestDelegate).self, ChainStep.self, (any CompletableRequest).self, JSONShape.self, (any RequestAccessory).self,
        RequestAgent.self, RequestCacheError.self, (any RequestDelegate).self, RequestEnding.self, RequestErrors.self,
        RequestEventAccessory.self, RequestGroup.self, RequestGroupAgent.self, RequestSerializerType.self, RequestValidationError.self,
        RequestsConfiguration.self, ResponseSerializerType.self, (any RunnableRequest).self, TerminalPresenter.self, TokenRefresher.self,
        UrlArgumentsFilter.self, (any UrlFilter).self,
    ],
    "Resilience": [
        Bulkhead.self, CircuitBreaker.self, CircuitBreakerState.self, ClosurePolicyObserver.self, Coalescing.self,
        ConcurrencyLimiter.self, ConcurrencyLimiterState.self, Hedging.self, HedgingState.self, IdempotencyKeys.self, Policy.self,
        PolicyEvent.self, PolicyGroup.self, (any PolicyObserver).self, PolicyOutcome.self, PolicyRequest.self, RateLimit.self,
        RateLimitGrant.self, (any RateLimitStore).self, RateLimiter.self, RateLimiterState.self, Resilience.self, RetryBudget.self,
        RetryBudgetState.self, SharedChange.self, (any SharedPolicyState).self,
    ],
    "Services": [
        AnyHTTPService.self, AnyServiceRequest.self, AnyServiceRetrierFactory.self, AnyServiceStreamRequest.self,
        BackoffServiceRetrier.self, CachingServiceHook.self, (any HTTPBody).self, HTTPBodyBuilder.self, HTTPData.self,
        HTTPHeadersBuilder.self, HTTPRoute.self, HTTPRouteBuilder.self, (any HTTPService).self,
        (any JSONServiceRequest).self, (any JSONServiceStreamRequest).self, MIMEType.self, MultipartBuilder.self, MultipartPart.self,
        (any NetworkServiceRequest).self, NilServiceHook.self, NilServiceRetrier.self, (any PaginatedData).self,
        RequestPriority.self, ServiceError.self, (any ServiceHook).self, ServiceLog.self, (any ServiceRequest).self,
        (any ServiceRetrier).self, (any ServiceRetrierFactory).self, (any ServiceStreamRequest).self, ServiceSubscription.self,
        (any WebSocketMessageConvertible).self,
    ],
    "Signing": [
        AWSChunkSigner.self, AWSContainerCredentials.self, AWSCredentials.self, AWSCredentialsChain.self, AWSCredentialsError.self,
        (any AWSCredentialsProvider).self, AWSEnvironmentCredentials.self, AWSInstanceCredentials.self, AWSProfileCredentials.self,
        AWSSignatureV4.self, AWSSigner.self, AWSSigningError.self, AWSWebIdentityCredentials.self,
        HMACWebhook.self, MessageComponent.self, MessageSignature.self, MessageSignatureError.self, MessageSigner.self,
        MessageVerifier.self, SignableMessage.self, SignatureAlgorithm.self, SignatureInput.self, SigningKey.self, SigningKeyError.self,
        StandardWebhook.self, VerificationKey.self, WebhookError.self, WebhookSigner.self,
    ],
    "Testing": [
        BodyPattern.self, Cassette.self, CassetteError.self, CassetteRedaction.self, MockConnection.self, MockRequest.self,
        MockResponse.self, MockStub.self, MockTransport.self, MockWaitTimedOut.self, MockWebSocket.self, MockWebSocketError.self,
        RecordingTransport.self, ReplayTransport.self, ServerRoute.self, StoredExchange.self, URLPattern.self, UnmatchedRequest.self,
        VirtualClock.self,
    ],
    "Transport": [
        AddressPolicy.self, AddressRange.self, AlternativeServices.self, BodyRead.self, (any BodySource).self, Certificate.self,
        CertificateAuthorities.self, ClientCertificate.self, ConnectionEvent.self,
        ConnectionStatistics.self, CurlInfo.self, CurlTransport.self, DataBody.self, (any ExchangeSigner).self,
        HTTPVersionPolicy.self,
        HostResolver.self, IPVersion.self, ProxyPolicy.self, PublicKey.self, ReceiveAction.self, ResponseHead.self, ServerTrust.self,
        SignableExchange.self, SocketOptions.self, (any StreamHandle).self, (any StreamTransferObserver).self, StreamTransferRequest.self,
        TLSOptions.self,
        TransferCompletion.self, (any TransferHandle).self, TransferMetrics.self, (any TransferObserver).self, TransferOptions.self,
        TransferRequest.self, (any Transport).self, TransportConfiguration.self,
    ],
    "Uploads": [
        ResumableUpload.self, ResumableUploadError.self,
    ],
    "URLSession": [
        URLProtocol.self, (any URLProtocolClient).self, URLSession.self, URLSessionConfiguration.self,
        (any URLSessionDataDelegate).self, URLSessionDataTask.self, (any URLSessionDelegate).self, (any URLSessionDownloadDelegate).self,
        URLSessionDownloadTask.self, (any URLSessionStreamDelegate).self, URLSessionStreamTask.self, URLSessionTask.self,
        (any URLSessionTaskDelegate).self, URLSessionTaskMetrics.self, URLSessionTaskTransactionMetrics.self, URLSessionUploadTask.self,
        (any URLSessionWebSocketDelegate).self, URLSessionWebSocketTask.self,
    ],
    "WebSocket": [
        WebSocket.self, WebSocketCloseCode.self, WebSocketClosure.self, WebSocketCompression.self, WebSocketConfiguration.self,
        WebSocketError.self, WebSocketHandshake.self, WebSocketMessage.self, WebSocketMessages.self, WebSocketReconnection.self,
        WebSocketRejection.self, WebSocketState.self, WebSocketStates.self,
    ],
]
