# SPDX-License-Identifier: Apache-2.0
#
# A GraphQL server by strawberry-graphql, on uvicorn. Prints its port, and ends with its input.
import asyncio, hashlib, os, socket, sys, threading
from typing import AsyncGenerator, Optional
import strawberry, uvicorn
from graphql import GraphQLError
from strawberry.asgi import GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.file_uploads import Upload

seen = {"bumps": 0, "active": 0, "connections": 0}

@strawberry.type
class Hero:
    id: strawberry.ID
    name: str

    @strawberry.field
    def friend(self) -> Optional["Hero"]:
        raise GraphQLError(f"{self.name} has no friend", extensions={"code": "LONELY", "id": self.id})

@strawberry.type
class Seen:
    bumps: int
    active: int
    connections: int

@strawberry.type
class Query:
    @strawberry.field
    def heroes(self, first: int = 2) -> list[Hero]:
        return [Hero(id=str(number), name=f"hero {number}") for number in range(first)]

    @strawberry.field
    def secret(self) -> str:
        raise GraphQLError("not for you", extensions={"code": "FORBIDDEN"})

    @strawberry.field
    def seen(self) -> Seen:
        return Seen(**seen)

@strawberry.type
class Mutation:
    @strawberry.mutation
    def bump(self, by: int = 1) -> int:
        seen["bumps"] += by
        return seen["bumps"]

    @strawberry.mutation
    async def store(self, files: list[Upload], cover: Optional[Upload] = None) -> list[str]:
        result = []
        for file in files + ([cover] if cover else []):
            content = await file.read()
            result.append(f"{file.filename} {file.content_type} {len(content)} {hashlib.sha256(content).hexdigest()}")
        return result

@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int, failing_at: int = -1) -> AsyncGenerator[int, None]:
        seen["active"] += 1
        try:
            for number in range(to):
                if number == failing_at:
                    raise GraphQLError("no more", extensions={"code": "STOPPED"})
                yield number
                await asyncio.sleep(0.01)
        finally:
            seen["active"] -= 1

    @strawberry.subscription
    async def params(self, info: strawberry.Info) -> AsyncGenerator[str, None]:
        yield str(info.context["connection_params"].get("token"))

class Server(GraphQL):
    async def on_ws_connect(self, context):
        seen["connections"] += 1
        if context.get("connection_params", {}).get("token") == "wrong":
            raise ConnectionRejectionError()
        return await super().on_ws_connect(context)

def end_with_input():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_input, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
schema = strawberry.Schema(query=Query, mutation=Mutation, subscription=Subscription)
app = Server(schema, multipart_uploads_enabled=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="wsproto")).run(sockets=[listener])
