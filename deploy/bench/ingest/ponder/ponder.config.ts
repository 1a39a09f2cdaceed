import { createConfig } from "ponder";
import { abi } from "./abi";

// What differs from run to run comes from the benchmark by the environment.
export default createConfig({
  database: { kind: "postgres", connectionString: process.env.DATABASE_URL },
  chains: { bench: { id: 31337, rpc: process.env.BENCH_RPC } },
  contracts: {
    Vault: {
      chain: "bench",
      abi,
      address: process.env.BENCH_VAULT as `0x${string}`,
      startBlock: Number(process.env.BENCH_START),
      endBlock: Number(process.env.BENCH_END),
    },
  },
});
