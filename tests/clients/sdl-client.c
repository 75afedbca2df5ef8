/* SPDX-License-Identifier: MIT */

/* As a game does: plays silence from a thread of SDL's until it is killed. */

#include <SDL2/SDL.h>

static void play(void *userdata, Uint8 *stream, int n_bytes) {
        SDL_memset(stream, 0, (size_t) n_bytes);
}

int main(int argc, char *argv[]) {
        SDL_AudioSpec wanted = {
                .freq = 48000,
                .format = AUDIO_S16,
                .channels = 2,
                .samples = 1024,
                .callback = play,
        };
        SDL_AudioDeviceID device;

        if (SDL_Init(SDL_INIT_AUDIO) < 0)
                return 1;
        device = SDL_OpenAudioDevice(NULL, 0, &wanted, NULL, 0);
        if (device == 0)
                return 1;

        SDL_PauseAudioDevice(device, 0);
        for (;;)
                SDL_Delay(1000);
}
