// Servers of a test's own process.

/**
 * Has an HTTP server listen on a loopback port of the system's choice. `stop` breaks off whatever
 * goes on.
 *
 * @param {import("node:http").Server} server
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
export async function listening(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
