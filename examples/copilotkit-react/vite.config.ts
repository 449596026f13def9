import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // Addresses in the built page are relative: any server, any path.
  base: "./",
  server: { host: "127.0.0.1" },
  preview: { host: "127.0.0.1" },
  // One page with a chat in it: highlighting and diagrams come in parts of their own, on demand.
  build: { chunkSizeWarningLimit: 4096 },
});
