"use strict";
// What textual.js needs to be told. It makes a terminal of #terminal in the handler of `load` that
// it has just set.

const makeTerminal = window.onload;

window.onload = async (event) => {
  // Seen from here, not from the server: between them may be an SSH tunnel to another port.
  const socket = new URL("ws", document.baseURI);
  socket.protocol = socket.protocol.replace("http", "ws");
  document.getElementById("terminal").dataset.sessionWebsocketUrl = socket.href;
  document.getElementById("again").onclick = () => location.reload();
  // The terminal measures the font once, when it is made.
  await Promise.all(["", "bold "].map((style) => document.fonts.load(`${style}14px 'Roboto Mono'`)));
  makeTerminal(event);
  document.querySelector(".xterm-helper-textarea").focus();
};
