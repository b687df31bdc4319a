# SPDX-License-Identifier: Apache-2.0
"""Signs requests with botocore, at a fixed time, and prints them with the signatures as JSON.

    pip install botocore==1.44.8
    python Tests/SigningTests/Vectors/make.py >Tests/SigningTests/Vectors/botocore.json

The credentials are those of AWS's documentation.
"""
import datetime
import json
import types

import botocore
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NOW = datetime.datetime(2026, 2, 28, 23, 59, 59)
botocore.auth.get_current_datetime = lambda *_, **__: NOW

KEY, SECRET = 'AKIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
TOKEN = 'IQoJb3JpZ2luX2VjE+/' + 'Zm9v' * 20 + '=='

HEADER_AUTH = {True: botocore.auth.S3SigV4Auth, False: botocore.auth.SigV4Auth}
QUERY_AUTH = {True: botocore.auth.S3SigV4QueryAuth, False: botocore.auth.SigV4QueryAuth}

PATHS = [
    '/', '/a', '/a/', '//', '//a//b//', '/a/./b', '/a/../b', '/../a', '/a/..', '/a/.', '/./', '/a/b/../../../c/', '/.hidden/..b/c..',
    '/a%20b', '/a%2Fb', '/%C3%A9/%E2%82%AC', '/%F0%9F%90%A6', '/e%CC%81', '/~user/-_.', '/%25', '/%2525', '/a%2Bb', '/%21%27%28%29%2A',
    '/%3A%40%26%3D%2C%3B%24', '/bucket/key%00', '/%FF%FE', '/2013-04-01/hostedzone/Z1%2FX/rrset/',
    '/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprofile%2Fx/invoke',
]
# What others than S3 encode as it is, and nothing of which S3 has to encode.
UNESCAPED_PATHS = ['/a:b', '/a@b', "/!$&'()*+,;=", '/%c3%a9', '/%7Euser', '/%2e%2E/a', '/a b']
QUERIES = [
    'a=1', 'b=2&a=1', 'a=2&a=1', 'a=1&a=', 'a', 'a&b', 'a=', 'uploads', 'versioning=&prefix=', 'A=1&a=2&B=3', 'a=b=c'.replace('=c', '%3Dc'),
    'a-=1&a=2', 'a%20b=c%20d', 'a=%2B&b=%2F&c=%26', 'list-type=2&prefix=photos%2F2026%2F&delimiter=%2F', 'q=%E2%82%AC', '%E1%88%B4=bar',
    'q=e%CC%81&q=%C3%A9', 'a10=1&a2=2&a1=3', 'a=~-_.', 'a=%00', 'a=%FF', 'Action=ListUsers&Version=2010-05-08', 'x=1&X-Other=2&x-a=3',
    'partNumber=1&uploadId=abc%2Bdef%3D%3D', 'a=%7B%22k%22%3A%5B1%5D%7D', 'b&a&c&a', 'a%5B%5D=2&a%5B%5D=1', 'z=%7C&y=%60', 'a=%25&a=%2525',
]
HEADERS = [
    [['X-Amz-Meta-Name', '  two   words  ']], [['X-Amz-Meta-Tab', 'a\t b \t\tc']], [['My-Header', 'b'], ['My-Header', 'a']],
    [['my-header', '2'], ['Other', '0'], ['MY-HEADER', ' 1  1 ']], [['X-Empty', '']], [['Content-Type', 'application/json; charset="x  y"']],
    [['User-Agent', 'curlew'], ['Connection', 'close'], ['X-Amzn-Trace-Id', 'Root=1'], ['Expect', '100-continue']],
    [['Transfer-Encoding', 'chunked'], ['Te', 'trailers'], ['Trailer', 'x'], ['Upgrade', 'h2c'], ['Keep-Alive', '1'], ['X-Signed', 'y']],
    [['Baggage', 'a=b'], ['Traceparent', '00-1'], ['Tracestate', 'x=y'], ['Proxy-Authorization', 'x'], ['Proxy-Authenticate', 'y']],
    [['Content-Length', '5'], ['Accept', '*/*'], ['Accept-Encoding', 'gzip']], [['X-Amz-Meta-Umlaut', 'grün  é']], [['Authorization', 'old']],
    [['X-Amz-Date', '19700101T000000Z'], ['Range', 'bytes=0-9']], [['x-amz-acl', 'private'], ['X-AMZ-Storage-Class', 'STANDARD']],
    [['Content-MD5', 'XUFAKrxLKna5cZ2REBfFkg=='], ['X-a', '1'], ['X-A-b', '2'], ['X_c', '3'], ['X.d', '4']],
]


def vector(form, service, url, headers=(), token=None, method='GET', body=b'', region='us-east-1', expires=3600, unsigned=False):
    s3 = service == 's3'
    request = AWSRequest(method=method, url=url, data=body)
    for name, value in headers:
        request.headers.add_header(name, value)
    if unsigned:
        request.context['payload_signing_enabled'] = False
        request.context['client_config'] = types.SimpleNamespace(s3={'payload_signing_enabled': False})
    credentials = Credentials(KEY, SECRET, token)
    if form == 'header':
        HEADER_AUTH[s3](credentials, service, region).add_auth(request)
        names = ['Authorization', 'X-Amz-Date', 'X-Amz-Content-SHA256', 'X-Amz-Security-Token']
        result = {name.lower(): request.headers[name] for name in names if name in request.headers}
    else:
        presign(QUERY_AUTH[s3](credentials, service, region, expires=expires), request)
        result = request.url
    values = {
        'form': form, 'service': service, 'region': region, 'method': method, 'url': url, 'headers': list(headers), 'token': token,
        'body': body.decode(), 'unsigned': unsigned, 'expires': expires, 'result': result,
    }
    return {name: value for name, value in values.items() if value}


def presign(auth, request):
    """What auth.add_auth does, but for the URL's query, of which it drops repeated names and bytes that are not UTF-8."""
    request.url, _, query = request.url.partition('?')
    request.context['timestamp'] = NOW.strftime(botocore.auth.SIGV4_TIMESTAMP)
    auth._modify_request_before_signing(request)
    if query:
        items = [item if '=' in item else f'{item}=' for item in query.split('&')]
        request.url = request.url.replace('?', f'?{"&".join(items)}&')
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    auth._inject_signature_to_request(request, signature)


def vectors():
    for s3, service, host in [(True, 's3', 'bucket.s3.eu-central-1.amazonaws.com'), (False, 'execute-api', 'x1.example.amazonaws.com')]:
        base = f'https://{host}'
        for form in ['header', 'query']:
            for path in PATHS + ([] if s3 else UNESCAPED_PATHS):
                yield vector(form, service, base + path)
            for query in QUERIES:
                yield vector(form, service, f'{base}/a%20b?{query}')
            for headers in HEADERS:
                # The query's form signs it, although it is not meant to be sent with it.
                if form == 'query' and headers[0][0] == 'Authorization':
                    continue
                yield vector(form, service, f'{base}/a', headers)
            for method in ['PUT', 'POST', 'DELETE', 'HEAD', 'PATCH']:
                yield vector(form, service, f'{base}/a/b?c=d', token=TOKEN, method=method, body=b'{"a": 1}' if form == 'header' else b'')
            for expires in [1, 900, 604800]:
                yield vector(form, service, f'{base}/a', expires=expires, region='eu-central-1')
            yield vector(form, service, f'{base}/a', [['Host', 'other.example.org:8080']])
        for authority in ['localhost:9000', f'{host}:443', 'user:p%40ss@example.org', '[::1]:9000', '[2001:db8::1]', '127.0.0.1:80']:
            for form in ['header', 'query']:
                # The query's form keeps what a URL need not have.
                if form == 'header' or '@' not in authority and ':443' not in authority:
                    yield vector(form, service, f'https://{authority}/a')
        yield vector('header', service, 'http://example.org:80/a')
        yield vector('header', service, 'http://example.org:443/a?b#c?d')
        yield vector('header', service, f'{base}/a', method='PUT', body=b'x' * 1000, unsigned=True)
        yield vector('header', service, f'{base}/a', method='PUT', body='é€'.encode())
    for service, region in [('iam', 'us-east-1'), ('dynamodb', 'ap-southeast-2'), ('bedrock', 'us-west-2'), ('sts', 'aws-global')]:
        yield vector('header', service, f'https://{service}.amazonaws.com/', [['X-Amz-Target', 'T.Op']], TOKEN, 'POST', b'{}', region)


head = {
    'botocore': botocore.__version__, 'time': NOW.replace(tzinfo=datetime.timezone.utc).timestamp(), 'accessKeyID': KEY,
    'secretAccessKey': SECRET,
}
lines = ',\n'.join(json.dumps(one, ensure_ascii=False) for one in vectors())
print(f'{json.dumps(head)[:-1]}, "vectors": [\n{lines}\n]}}')
