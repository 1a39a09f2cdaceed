// Receives navlog's webhooks: see ../README.md.

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const secret = setting("WEBHOOK_SECRET");
const tolerance = 300; // seconds
const maxBody = 64 * 1024;

const seen = new Set<string>(); // event ids; a real receiver keeps them in its database
const sequences = new Set<number>();

function header(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return typeof value === "string" ? value : "";
}

/** Returns whether the body was signed recently with our secret. */
function genuine(request: IncomingMessage, body: Buffer): boolean {
  const timestamp = header(request, "x-service-timestamp");
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false;
  const want = Buffer.from("sha256=" + createHmac("sha256", secret).update(timestamp + ".").update(body).digest("hex"));
  // During a rotation there are two signatures, and one of them is made with our secret.
  return ["x-service-signature", "x-service-signature-next"].some((name) => {
    const given = Buffer.from(header(request, name));
    return given.length === want.length && timingSafeEqual(given, want);
  });
}

async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBody) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await read(request);
  if (!body) return void response.writeHead(413, { connection: "close" }).end();
  if (!genuine(request, body)) return void response.writeHead(401).end();
  // From the body: headers are not signed, and a copied request may have another id there.
  const { id, type } = JSON.parse(body.toString()) as { id: string; type: string };
  const news = seen.has(id) ? "repeat" : "new";
  seen.add(id);
  const sequence = header(request, "x-service-sequence");
  if (sequence) sequences.add(Number(sequence));
  const missing = [...sequences].reduce((highest, n) => Math.max(highest, n), 0) - sequences.size;
  console.log(news, id, type, "missing", missing);
  response.writeHead(204).end();
}

const server = createServer({ cert: readFileSync(setting("TLS_CERT")), key: readFileSync(setting("TLS_KEY")) }, (request, response) => {
  receive(request, response).catch(() => response.destroy());
});
server.listen(Number(process.env["PORT"] ?? 0), "127.0.0.1", () => {
  console.log("listening", (server.address() as AddressInfo).port);
});
