# SPDX-License-Identifier: Apache-2.0
#
# An authorization server by Authlib, and an API that accepts its tokens: authlib-server.py family|lenient JWK. Prints its port.
import json, logging, os, sys, time
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7636 import CodeChallenge
from flask import Flask, request
from werkzeug.serving import make_server

revokes_family, key = sys.argv[1] == "family", json.loads(sys.argv[2])
tokens, codes, methods = [], {}, []

class Client(ClientMixin):
    client_id = "app"
    def get_client_id(self): return "app"
    def get_default_redirect_uri(self): return None
    def get_allowed_scope(self, scope): return scope or ""
    def check_redirect_uri(self, uri): return uri.startswith("http://127.0.0.1:")
    def check_client_secret(self, secret): return secret == "s:/+%"
    def check_endpoint_auth_method(self, method, endpoint): methods.append(method); return True
    def check_response_type(self, kind): return kind == "code"
    def check_grant_type(self, kind): return True

class Token(TokenMixin):
    def __init__(self, values): self.__dict__.update(values); self.values, self.replaced, self.revoked, self.end = values, 0, False, time.time() + values["expires_in"]
    def check_client(self, client): return True
    def get_scope(self): return self.values.get("scope", "")
    def get_expires_in(self): return self.values["expires_in"]
    def is_expired(self): return time.time() > self.end
    def is_revoked(self): return self.revoked
    def get_user(self): return "user"
    def get_client(self): return Client()

class Code:
    def __init__(self, request, code):
        data = request.payload.data
        self.code, self.redirect_uri, self.scope = code, data["redirect_uri"], data.get("scope", "")
        self.code_challenge, self.code_challenge_method = data["code_challenge"], data["code_challenge_method"]
    def get_redirect_uri(self): return self.redirect_uri
    def get_scope(self): return self.scope

class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]
    def save_authorization_code(self, code, request): codes[code] = Code(request, code)
    def query_authorization_code(self, code, client): return codes.get(code)
    def delete_authorization_code(self, code): del codes[code.code]
    def authenticate_user(self, code): return "user"

class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "none"]
    INCLUDE_NEW_REFRESH_TOKEN = True
    def authenticate_refresh_token(self, text):
        token = next((t for t in tokens if t.values.get("refresh_token") == text and not t.revoked), None)
        if token and token.replaced and revokes_family:
            for t in tokens: t.revoked = True
            return None
        return token
    def authenticate_user(self, token): return "user"
    def revoke_old_credential(self, token): token.replaced += 1

class ClientGrant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"]

class Revocation(RevocationEndpoint):
    def query_token(self, text, hint): return next((t for t in tokens if text in t.values.values()), None)
    def revoke_token(self, token, request): token.revoked = True

class Assertion(JWTBearerClientAssertion):
    def get_audiences(self): return [f"http://127.0.0.1:{listener.port}/token"]
    def validate_jti(self, claims, jti): return True
    def resolve_client_public_key(self, client, headers): return key

app = Flask("authlib")
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
server = AuthorizationServer(app, query_client=lambda name: Client() if name == "app" else None, save_token=lambda values, request: tokens.append(Token(values)))
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
server.register_grant(RefreshGrant)
server.register_grant(ClientGrant)
server.register_endpoint(Revocation)

@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user="user")
    return server.create_authorization_response(grant_user="user", grant=grant)

@app.post("/token")
def token(): return server.create_token_response()

@app.post("/revoke")
def revoke(): return server.create_endpoint_response("revocation")

@app.get("/api")
def api():
    text = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = next((t for t in tokens if t.values["access_token"] == text and not t.revoked and not t.is_expired()), None)
    return ("data", 200) if token else ("", 401)

@app.get("/expire")
def expire():
    for t in tokens: t.end = 0
    return ""

@app.get("/seen")
def seen(): return {"methods": methods, "tokens": len(tokens)}

logging.getLogger("werkzeug").setLevel(logging.ERROR)
listener = make_server("127.0.0.1", 0, app, threaded=True)
server.register_client_auth_method("private_key_jwt", Assertion())
print(listener.port, flush=True)
listener.serve_forever()
